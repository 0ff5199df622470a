package natskv

import (
	"fmt"
	"slices"
)

// release is the number of a server's release: major, minor, patch. The zero value is an unknown one, older than all.
type release [3]int

// parseRelease ignores what follows the numbers, such as "-RC.1".
func parseRelease(text string) release {
	var r release
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &r[0], &r[1], &r[2]); err != nil {
		return release{}
	}
	return r
}

func (r release) known() bool { return r != release{} }

func (r release) atLeast(other release) bool { return slices.Compare(r[:], other[:]) >= 0 }

func (r release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }
