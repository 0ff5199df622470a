package shell

import (
	"context"
	"os/exec"
)

// command has no process group here: only the shell itself is killed.
func command(ctx context.Context, line string) *exec.Cmd {
	return exec.CommandContext(ctx, "cmd", "/C", line)
}

func run(c *exec.Cmd) error { return c.Run() }
