//go:build unix

package guardtest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
)

// AwaitEndOf waits until the process has ended whose number is in this file. The file may be
// written later.
func AwaitEndOf(t *testing.T, file string) {
	t.Helper()
	wait.Succeeds(t, "the end of the process in "+file, func(context.Context) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && runs(pid) {
			err = fmt.Errorf("process %d runs on", pid)
		}
		return err
	})
}
