//go:build unix

package wrap

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure"
)

// told are the variables that the command is told by.
var told = []string{"TENURE_ELECTION=", "TENURE_ID=", "TENURE_TOKEN="}

// environment is this process's own, without what is told anew: a name that is there twice means the first to some programs.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return slices.ContainsFunc(told, func(name string) bool { return strings.HasPrefix(variable, name) })
	})
}

func token(t *tenure.Term) string { return strconv.FormatUint(t.Token(), 10) }
