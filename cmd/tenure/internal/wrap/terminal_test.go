//go:build integration && unix

package wrap

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/terminaltest"
	"golang.org/x/sys/unix"
)

const terminalEnv = "TEST_OF_TENURE_TERMINAL"

// If a command reads before the terminal is lent to it, the system stops the command.
func TestTerminalIsLentToACommandThatReadTooSoon(t *testing.T) {
	if os.Getenv(terminalEnv) != "" {
		lendLate(t)
		return
	}
	t.Parallel()
	cmd := exec.Command(guardtest.Self(), "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), terminalEnv+"=1")
	w := terminaltest.Open(t, cmd, 80, 24)
	w.Await(0, "lent")
	w.Press("hello\n")
	w.Await(0, "command: hello")
	w.Await(0, "back")
}

// lendLate runs with the terminal of this process.
func lendLate(t *testing.T) {
	c := exec.Command("/bin/sh", "-c", `read x; echo "command: $x"`)
	c.Stdin, c.Stdout = os.Stdin, os.Stdout
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(c.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, %v", status, err)
	}
	tty := lend(c.Process.Pid)
	fmt.Println("lent")
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	tty.back()
	tty.back() // all of them are gone
	if owner, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err != nil || owner != unix.Getpgrp() {
		t.Errorf("%d has it, not %d: %v", owner, unix.Getpgrp(), err)
	}
	fmt.Println("back")
}
