package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// The init has two files with these numbers.
const (
	initUsed = 3 // ends when the command has ended
	initSays = 4 // receives initReady, or the reason why there can be no init

	initReady = "ready"
)

// beInit is the first process of a command's PID namespace. It adopts orphans, and returns when the
// command has ended and no other process of the namespace is left. Because it ignores SIGCHLD, the
// kernel reaps its children.
func beInit() error {
	// the signals for all descendants come here too
	signal.Ignore(append(Forwarded, unix.SIGCHLD)...)
	says := os.NewFile(initSays, "says")
	if err := mountProc(); err != nil {
		_, _ = io.WriteString(says, err.Error())
		return err
	}
	_, _ = io.WriteString(says, initReady)
	_ = says.Close()
	defer KeepSmall(settled)()
	_, _ = io.Copy(io.Discard, os.NewFile(initUsed, "used"))
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			return nil
		}
	}
}

// mountProc makes /proc show the processes of this namespace. It also gives this process a name,
// for people who look at the list of processes.
func mountProc() error {
	_ = os.WriteFile("/proc/self/comm", []byte("tenure-init"), 0)
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount its /proc: %w", err)
	}
	return nil
}
