//go:build unix

package shell

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
)

func command(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	c.Cancel = func() error {
		err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	return c
}

func run(c *exec.Cmd) error {
	if err := guard.StartHelper(c); err != nil {
		return err
	}
	defer guard.ForgetHelper(c)
	return c.Wait()
}
