//go:build unix

package wrap

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure"
)

// told are the variables that are set for the command.
var told = []string{"TENURE_ELECTION", "TENURE_ID", "TENURE_TOKEN"}

// environment returns this process's environment, without Unset and the variables that are set
// again: some programs use the first of two variables with the same name.
func (w *Wrapper) environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(told, name) || slices.Contains(w.Unset, name)
	})
}

func token(t *tenure.Term) string { return strconv.FormatUint(t.Token(), 10) }
