package shell

import (
	"context"
	"os/exec"
	"syscall"
)

// command has no process group here: only the shell itself is killed. The line is passed as it is:
// cmd does not understand the quotes that package exec would add.
func command(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "cmd")
	c.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /S /C "` + line + `"`}
	return c
}

func run(c *exec.Cmd) error { return c.Run() }
