//go:build unix

package wrap

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The command was deleted. A candidate without rivals finds that once in each lease.
func TestProblemOfEachTermIsLoggedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, nil))
		w := &Wrapper{begun: time.Now()}
		for term := range 240 { // an hour
			w.complain(log.With("term", term), "command not started", "cause", errors.New("fork/exec /x: no such file or directory"))
			time.Sleep(15 * time.Second)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if n := len(lines); n < 7 || n > 10 || strings.Contains(lines[0], "times=") || !strings.Contains(lines[n-1], "times=") {
			t.Errorf("%d lines:\n%s", n, out.String())
		}
		w.complain(log, "command not started", "cause", errors.New("permission denied"))
		if !strings.Contains(out.String(), "permission denied") {
			t.Error("another cause is not logged")
		}
	})
}
