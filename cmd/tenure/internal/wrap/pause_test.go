//go:build unix

package wrap

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
)

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
		r := &commandRun{ended: &c.end, lasted: c.lasted}
		if got := r.failures(3); got != c.want {
			t.Errorf("%s: %d failures after 3, want %d", c.why, got, c.want)
		}
	}
}

func TestRestarts(t *testing.T) {
	for _, c := range []struct {
		why     string
		restart Restart
		run     commandRun
		want    bool
	}{
		{"the default", "", commandRun{own: true, ended: &guard.Ending{Code: 1}}, false},
		{"never", RestartNever, commandRun{own: true, ended: &guard.Ending{Code: 1}}, false},
		{"it failed", RestartOnFailure, commandRun{own: true, ended: &guard.Ending{Code: 1}}, true},
		{"it did its work", RestartOnFailure, commandRun{own: true, ended: &guard.Ending{}}, false},
		{"always", RestartAlways, commandRun{own: true, ended: &guard.Ending{}}, true},
		{"the guard has ended it", RestartAlways, commandRun{ended: &guard.Ending{Signal: 9}}, false},
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
				w.stop, w.halt = context.WithCancel(t.Context())
				defer w.leave()
				defer w.halt()
				r := &commandRun{w: w, begun: begun, ended: &guard.Ending{Code: c.code}}
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
