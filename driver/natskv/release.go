package natskv

import (
	"fmt"
	"slices"
)

// release is the number of a server's release: major, minor, patch. The zero value is an unknown
// one, older than all.
type release [3]int

// parseRelease ignores text after the numbers, such as "-RC.1".
func parseRelease(text string) release {
	var r release
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &r[0], &r[1], &r[2]); err != nil {
		return release{}
	}
	return r
}

func (r release) known() bool { return r != release{} }

func (r release) atLeast(other release) bool { return slices.Compare(r[:], other[:]) >= 0 }

// losesFirst reports whether the release may start without the messages of a file stream that has
// a first sequence of its own, while the first message is still there
// (https://github.com/nats-io/nats-server/pull/6753).
func (r release) losesFirst() bool {
	return r.atLeast(release{2, 10, 0}) && !r.atLeast(release{2, 10, 28}) ||
		r.atLeast(release{2, 11, 0}) && !r.atLeast(release{2, 11, 2})
}

// beginsAnywhere reports whether a stream can safely have a first sequence of its own.
func (r release) beginsAnywhere() bool { return r.atLeast(release{2, 10, 28}) && !r.losesFirst() }

func (r release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }
