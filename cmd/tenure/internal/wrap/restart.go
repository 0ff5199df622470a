//go:build unix

package wrap

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/loglimit"
)

// Restart says after which ends of its own the command is run again while this process goes on
// leading.
type Restart string

// The kinds of restart.
const (
	RestartNever     Restart = "never"
	RestartOnFailure Restart = "on-failure" // an exit code other than 0, or a signal
	RestartAlways    Restart = "always"
)

// Restarts are all kinds.
var Restarts = []Restart{RestartNever, RestartOnFailure, RestartAlways}

// How a command is treated that fails again and again.
const (
	firstPause = time.Second
	// healthy is a run after which the pauses begin again with the first.
	healthy = 10 * time.Second
	// mostFailures in a row, each soon after the start, and others get their turn.
	mostFailures = 5
)

// How soon after the start of its command this process ends. A supervisor may start it again at
// once, and then leadership would move with each start.
const (
	leastFailed = 5 * time.Second
	leastDone   = time.Second // for a command that has done its work
)

// pause returns the time before the next run, after fewer than mostFailures in a row.
func pause(failures int) time.Duration {
	return jitter(firstPause << max(failures-1, 0))
}

// jitter adds up to a quarter, so that machines that fail together do not restart together.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/4) }

// restarts reports whether the command is to be run again in this term.
func (w *Wrapper) restarts(r *tour) bool {
	if !r.own || w.asked() != 0 {
		return false
	}
	return w.Restart == RestartAlways || w.Restart == RestartOnFailure && r.code() != 0
}

// failures counts those in a row that came soon after the start.
func (r *tour) failures(before int) int {
	if r.code() == 0 || r.lasted >= healthy {
		return 0
	}
	return before + 1
}

// rest holds the lease while no command runs. It returns false if the work is to finish in the
// meantime.
func (r *tour) rest(ctx context.Context, d time.Duration) bool {
	r.log.Warn("the command is restarted after a pause", "pause", d.Round(time.Millisecond))
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// interrupted is the end of a term in which no command runs just then.
func (w *Wrapper) interrupted() error {
	if w.Once && w.asked() == 0 {
		w.end(CodeLost)
	}
	return nil
}

// stepAside gives leadership up for a while, because the command cannot do its work here: it may on
// another machine.
func (w *Wrapper) stepAside(r *tour) error {
	if w.Once || w.asked() != 0 {
		w.endLater(r)
		return nil
	}
	w.complain(r.log, "the command fails on this machine: others get their turn")
	return tenure.ErrDecline
}

// complain logs an error that each term may bring again, ever less often and with a count: a
// candidate without any other wins one term after the other.
func (w *Wrapper) complain(log *slog.Logger, text string, attrs ...any) {
	times := w.troubles.Admit(loglimit.Cause(fmt.Sprint(text, attrs), ""), time.Since(w.begun))
	if times > 1 {
		attrs = append(attrs, "times", times)
	}
	if times > 0 {
		log.Error(text, attrs...)
	}
}

// endLater ends the campaign with the command's exit code, and this process not long before a
// supervisor should start it again.
func (w *Wrapper) endLater(r *tour) {
	least := leastDone
	code := r.code()
	if r.failed != nil {
		code = startCode(r.failed)
	}
	if code != 0 {
		least = leastFailed
	}
	if w.asked() == 0 {
		w.linger = r.begun.Add(jitter(least))
	}
	w.end(code)
}

// Linger returns when this process may end. A supervisor that starts it again at once, over and
// over, would otherwise have leadership move as often. It comes after Run and after the store is
// closed; a signal ends it.
func (w *Wrapper) Linger() {
	left := time.Until(w.linger)
	if left <= 0 {
		return
	}
	w.Log.Info("the command ended soon after its start, or was not started: tenure ends later, since it may be started again at once",
		"later", left.Round(time.Millisecond))
	select {
	case <-time.After(left):
	case <-w.stop.Done():
	}
}
