//go:build unix && !linux

package guard

import (
	"errors"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// FindsOrphans is false: the children of a process that has ended become children of the system's
// first process.
const FindsOrphans = false

// lines are empty: the kernel holds no timer and no tripwire here.
type lines struct{}

func newLines(m mode, _, _ int) (*lines, error) {
	if m != plain {
		return nil, errors.New("PID namespaces need Linux")
	}
	return &lines{}, nil
}

func (l *lines) bind(*syscall.SysProcAttr)                       {}
func (l *lines) tie(int) error                                   { return nil }
func (l *lines) arm(clock.Reading, time.Duration, time.Duration) {}
func (l *lines) disarm()                                         {}

// found is a process that a search has found: none here.
type found struct{ pid int }

func (found) signal(syscall.Signal) {}

func descendants(int, map[int]bool, time.Duration) (all []found, whole bool) { return nil, true }
