//go:build unix

package guard

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep is for a candidate whose guard has died. It kills what is left of the command, whose
// process was pid, and returns true when nothing is left. On Linux the kernel has done so already,
// except for processes that have left the process group; these are found if Adopt was called before
// the guard was started. No other guard may exist, and this process must not have started another
// child since. Processes of another user cannot be killed, so Sweep waits for them. One second
// after giveUp was closed, it returns false.
func Sweep(pid int, giveUp <-chan struct{}) bool {
	var late <-chan time.Time
	for {
		if pid != 0 {
			_ = unix.Kill(-pid, unix.SIGKILL)
		}
		left, _ := descendants(os.Getpid(), others, unhurried)
		for _, orphan := range left {
			orphan.signal(unix.SIGKILL)
			_, _ = unix.Wait4(orphan.pid, nil, unix.WNOHANG, nil) // fails for other children
		}
		if len(left) == 0 && (pid == 0 || errors.Is(unix.Kill(-pid, 0), unix.ESRCH)) {
			return true
		}
		select {
		case <-time.After(again):
		case <-giveUp:
			giveUp, late = nil, time.After(time.Second)
		case <-late:
			return false
		}
	}
}
