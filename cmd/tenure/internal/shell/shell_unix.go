//go:build unix

package shell

import (
	"context"
	"os/exec"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
)

// command is killed alone at the end of ctx. ForgetHelper then kills the rest of its group.
func command(ctx context.Context, line string) *exec.Cmd {
	return exec.CommandContext(ctx, "/bin/sh", "-c", line)
}

func run(c *exec.Cmd) error {
	if err := guard.StartHelper(c); err != nil {
		return err
	}
	defer guard.ForgetHelper(c)
	return c.Wait()
}
