//go:build unix

package wrap

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
)

func TestMain(m *testing.M) { guardtest.Main(m, guard.Main) }

func TestPausesGrow(t *testing.T) {
	for failures, least := range []time.Duration{
		time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
	} {
		seen := map[time.Duration]bool{}
		for range 50 {
			d := pause(failures)
			if seen[d] = true; d < least || d >= least+least/4 {
				t.Fatalf("a pause of %v after %d failures", d, failures)
			}
		}
		if len(seen) < 2 {
			t.Errorf("machines that fail together restart together after %d failures", failures)
		}
	}
}

func TestFailuresInARow(t *testing.T) {
	for _, c := range []struct {
		why    string
		end    guard.Ending
		lasted time.Duration
		want   int
	}{
		{"it failed at once", guard.Ending{Code: 1}, time.Second, 4},
		{"a signal is a failure", guard.Ending{Signal: 9}, 0, 4},
		{"it ran for long", guard.Ending{Code: 1}, healthy, 0},
		{"it has done its work", guard.Ending{}, 0, 0},
	} {
		r := &guarded.Run{Ended: &c.end, Lasted: c.lasted}
		if got := failuresAfter(r, 3); got != c.want {
			t.Errorf("%s: %d failures after 3, want %d", c.why, got, c.want)
		}
	}
}

func TestRestarts(t *testing.T) {
	for _, c := range []struct {
		why     string
		restart Restart
		run     guarded.Run
		want    bool
	}{
		{"the default", "", guarded.Run{Own: true, Ended: &guard.Ending{Code: 1}}, false},
		{"never", RestartNever, guarded.Run{Own: true, Ended: &guard.Ending{Code: 1}}, false},
		{"it failed", RestartOnFailure, guarded.Run{Own: true, Ended: &guard.Ending{Code: 1}}, true},
		{"it did its work", RestartOnFailure, guarded.Run{Own: true, Ended: &guard.Ending{}}, false},
		{"always", RestartAlways, guarded.Run{Own: true, Ended: &guard.Ending{}}, true},
		{"the guard has ended it", RestartAlways, guarded.Run{Ended: &guard.Ending{Signal: 9}}, false},
	} {
		if got := (&Wrapper{Options: Options{Restart: c.restart}}).restarts(&c.run); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
}

// If its command ended soon, a process ends later by the missing time. With a healthy command, or
// after a signal, it ends at once.
func TestLinger(t *testing.T) {
	for why, c := range map[string]struct {
		code           int
		lasted, signal time.Duration
		least, most    time.Duration
	}{
		"it failed at once":   {code: 1, least: leastFailed, most: leastFailed * 5 / 4},
		"it failed later":     {code: 1, lasted: 2 * time.Second, least: leastFailed, most: leastFailed * 5 / 4},
		"it failed after all": {code: 1, lasted: leastFailed * 5 / 4, least: leastFailed * 5 / 4, most: leastFailed * 5 / 4},
		"it was soon done":    {least: leastDone, most: leastDone * 5 / 4},
		"a signal":            {code: 1, signal: leastFailed / 2, least: leastFailed / 2, most: leastFailed / 2},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				w := &Wrapper{Options: Options{Log: slog.New(slog.DiscardHandler)}}
				w.ctx, w.leave = context.WithCancel(t.Context())
				defer w.leave()
				r := &guarded.Run{Begun: begun, Ended: &guard.Ending{Code: c.code}}
				time.Sleep(c.lasted)
				w.endLater(r)
				if c.signal != 0 {
					defer time.AfterFunc(c.signal, func() { w.Hear(15) }).Stop()
				}
				w.Linger()
				if took := time.Since(begun); took < c.least || took > c.most {
					t.Errorf("it ends after %v, and not after %v to %v", took, c.least, c.most)
				}
			})
		})
	}
}

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

// TestGiveUp: a campaign is given up, or its command begins, and never both.
func TestGiveUp(t *testing.T) {
	reason := errors.New("another candidate leads")
	given := &Wrapper{}
	given.leave = func() {
		if given.givenUp == nil {
			t.Error("the campaign ends before its reason is known: run would exit with 0")
		}
	}
	given.GiveUp(reason)
	given.GiveUp(errors.New("too late"))
	if !errors.Is(given.GivenUp(), reason) || given.begin() {
		t.Error("the command begins in a campaign that was given up, or the first reason is lost")
	}
	begun := &Wrapper{leave: func() { t.Error("the campaign ends") }}
	if !begun.begin() {
		t.Error("the command does not begin")
	}
	if begun.GiveUp(reason); begun.GivenUp() != nil {
		t.Error("a campaign is given up whose command has begun")
	}
}
