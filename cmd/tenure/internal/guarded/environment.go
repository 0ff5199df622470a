package guarded

import (
	"os"
	"slices"
	"strings"
)

// told are the variables that tenure sets for commands.
var told = []string{
	"TENURE_ELECTION", "TENURE_ID", "TENURE_TOKEN", "TENURE_SLOT", "TENURE_JOB", "TENURE_TICK", "TENURE_ATTEMPT",
	"TENURE_STATE", "TENURE_LEADER",
}

// Environment returns that of a command: the variables of this process, without unset, and with
// set, which has NAME=VALUE. Variables that tenure sets are left out first: some programs use the
// first of two variables with the same name.
func Environment(unset []string, set ...string) []string {
	own := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(told, name) || slices.Contains(unset, name)
	})
	return append(own, set...)
}
