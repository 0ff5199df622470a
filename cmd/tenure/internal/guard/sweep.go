//go:build unix

package guard

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep is for the candidate whose guard has died: it kills what is left of the command, whose process was pid, and returns when
// nothing is. On Linux the kernel has done so, but for those who have left the process group; they are found if Adopt was called before the
// guard was started. No other guard may be there, nor may this process have started another child since. What runs as another user cannot be killed and is
// waited for; a second after giveUp was closed Sweep returns false all the same.
func Sweep(pid int, giveUp <-chan struct{}) bool {
	var late <-chan time.Time
	for {
		if pid != 0 {
			_ = unix.Kill(-pid, unix.SIGKILL)
		}
		left := descendants(os.Getpid(), others)
		for _, orphan := range left {
			_ = unix.Kill(orphan, unix.SIGKILL)
			_, _ = unix.Wait4(orphan, nil, unix.WNOHANG, nil) // fails for the children of others
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
