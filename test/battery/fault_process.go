package main

import (
	"errors"
	"syscall"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// The faults of processes. Those of two processes begin in either order.
var (
	crash       = fault{name: "tenure is killed", begin: func(c *candidate) (func() error, error) { return nil, kill(c.pid()) }}
	crashBoth   = fault{name: "tenure and its guard are killed at once", begin: killBoth}
	crashGuard  = fault{name: "the guard is killed", begin: killGuard}
	freeze      = fault{name: "tenure is stopped", lasts: 2, begin: freezes((*candidate).alone)}
	freezeBoth  = fault{name: "tenure and its guard are stopped", lasts: 2, begin: freezes((*candidate).both)}
	freezeGuard = fault{name: "the guard is stopped", lasts: 2, begin: freezes((*candidate).guards)}
	crashFreeze = fault{name: "the guard is stopped and tenure killed", lasts: 2, begin: together(freezeGuard, crash)}
	freezeCrash = fault{name: "tenure is stopped and the guard killed", lasts: 2, begin: together(freeze, crashGuard)}
	// Only the kernel can still stop the command.
	freezeGuardLost = fault{name: "the guard is stopped, and everything to and from the server is swallowed", lasts: 2.5,
		begin: together(freezeGuard, blackhole)}
)

// together begins two faults. Its end ends both, as far as they have an end.
func together(first, second fault) func(*candidate) (func() error, error) {
	return func(c *candidate) (func() error, error) {
		end, err := first.begin(c)
		if err != nil {
			return nil, err
		}
		other, err := second.begin(c)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		return func() error {
			if other == nil {
				return end()
			}
			return errors.Join(end(), other())
		}, nil
	}
}

func killGuard(c *candidate) (func() error, error) {
	guard, err := c.guard()
	if err != nil {
		return nil, err
	}
	return nil, kill(guard)
}

// killBoth stops the second process first, so that it cannot act after the end of the first one.
func killBoth(c *candidate) (func() error, error) {
	pids, err := c.both()
	if err != nil {
		return nil, err
	}
	return nil, errors.Join(pause(pids[1]), each(pids, kill))
}

func freezes(whom func(*candidate) ([]int, error)) func(*candidate) (func() error, error) {
	return func(c *candidate) (func() error, error) {
		pids, err := whom(c)
		if err != nil {
			return nil, err
		}
		return func() error { return each(pids, resume) }, each(pids, pause)
	}
}

func each(pids []int, do func(pid int) error) error {
	for _, pid := range pids {
		if err := do(pid); err != nil {
			return err
		}
	}
	return nil
}

// pause and resume return no error if the process has ended.
func pause(pid int) error  { return unlessGone(machine.Pause(pid)) }
func resume(pid int) error { return unlessGone(machine.Resume(pid)) }

func unlessGone(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func (c *candidate) alone() ([]int, error) { return []int{c.pid()}, nil }

func (c *candidate) guards() ([]int, error) {
	pid, err := c.guard()
	return []int{pid}, err
}

// both returns tenure and its guard in a random order.
func (c *candidate) both() ([]int, error) {
	guard, err := c.guard()
	if c.stage.even() {
		return []int{guard, c.pid()}, err
	}
	return []int{c.pid(), guard}, err
}
