// Package shell runs command lines of the operator, such as health checks and hooks, which no
// guard watches.
package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// maxOutput is how many bytes of a command's output are kept for its error.
const maxOutput = 512

// drain is how long the output of descendants is read after the end of the command.
const drain = 100 * time.Millisecond

// Run runs a line in the system's shell, with these variables and no input. Its result is that of
// the shell: descendants that keep the output open do not count. The end of ctx kills the shell. On
// Unix, the end of the shell kills what is left of its process group. The error has the end of the
// output.
func Run(ctx context.Context, line string, env []string) error {
	c := command(ctx, line)
	out := &tail{}
	c.Env, c.Stdout, c.Stderr, c.WaitDelay = env, out, out, drain
	err := run(c)
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("it was killed: %w", cause)
	}
	if text := strings.TrimSpace(string(out.kept)); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// tail keeps the last bytes that are written. Package exec writes from one goroutine.
type tail struct{ kept []byte }

// Write takes the bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if n := len(t.kept) - maxOutput; n > 0 {
		t.kept = bytes.Clone(t.kept[n:])
	}
	return len(p), nil
}
