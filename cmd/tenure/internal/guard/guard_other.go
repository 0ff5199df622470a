//go:build unix && !linux

package guard

import (
	"errors"
	"os/exec"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// FindsOrphans is false: the children of a process that has ended become children of the system's
// first process.
const FindsOrphans = false

// backstop is empty: the kernel holds no timer and no tripwire here.
type backstop struct{ killer *killer }

func newBackstop(m mode, _, _ int) (*backstop, error) {
	if m != plain {
		return nil, errors.New("PID namespaces need Linux")
	}
	return &backstop{}, nil
}

func (b *backstop) bind(*syscall.SysProcAttr)                                      {}
func (b *backstop) tie(int) error                                                  { return nil }
func (b *backstop) arm(clock.Reading, time.Duration, time.Duration, time.Duration) {}
func (b *backstop) disarm()                                                        {}

// found is a process that a search has found: none here.
type found struct{ pid int }

func (found) signal(syscall.Signal) {}

func descendants(int, map[int]bool, time.Duration) (all []found, whole bool) { return nil, true }

var others map[int]bool

// Adopt does nothing here: orphans become children of the system's first process.
func Adopt() {}

// Bury does nothing here.
func Bury() {}

// Isolate makes Start return an error: only Linux has PID namespaces.
func Isolate(command *exec.Cmd) { command.Args = append(command.Args, string(asRoot)) }

// Uncovered returns the processes of a command that may outlive tenure, as a sentence.
func Uncovered(bool) string {
	return "the command is not ended if tenure and its guard are killed together, and processes that leave its process group are never ended: Linux has more ways to end them"
}

func (b *backstop) contains() bool                        { return false }
func (b *backstop) beginContained(*Command) (work, error) { return nil, nil }

func beInit() error { return errAlone }

// killer does nothing here.
type killer struct{}

func (*killer) aim(*job) {}

// giveBackPages does nothing here.
func giveBackPages() {}
