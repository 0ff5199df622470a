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

// Restart says after which ends the command is run again, while this process keeps leading.
type Restart string

// The kinds of restart.
const (
	RestartNever     Restart = "never"
	RestartOnFailure Restart = "on-failure" // an exit code other than 0, or a signal
	RestartAlways    Restart = "always"
)

// Restarts are all values of Restart.
var Restarts = []Restart{RestartNever, RestartOnFailure, RestartAlways}

// The limits for a command that fails repeatedly.
const (
	firstPause = time.Second
	// healthy is the length of a run after which the pauses begin again at firstPause.
	healthy = 10 * time.Second
	// mostFailures is the number of failures in a row, each before healthy, after which other
	// candidates get their turn.
	mostFailures = 5
)

// The least time from the start of the command to the end of this process. A supervisor may start
// this process again at once, and then leadership would move with each start.
const (
	leastFailed = 5 * time.Second
	leastDone   = time.Second // if the command has ended with code 0
)

// pause returns the time before the next run, after so many failures in a row.
func pause(failures int) time.Duration {
	return jitter(firstPause << max(failures-1, 0))
}

// jitter adds up to a quarter at random, so that machines that fail together do not restart
// together.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/4) }

// restarts reports whether the command is to be run again in this term.
func (w *Wrapper) restarts(r *tour) bool {
	if !r.own || w.asked() != 0 {
		return false
	}
	return w.Restart == RestartAlways || w.Restart == RestartOnFailure && r.code() != 0
}

// failures returns the number of failures in a row that came soon after the start.
func (r *tour) failures(before int) int {
	if r.code() == 0 || r.lasted >= healthy {
		return 0
	}
	return before + 1
}

// rest waits while no command runs and the lease is still renewed. It returns false if the work has
// to finish before the pause is over.
func (r *tour) rest(ctx context.Context, d time.Duration) bool {
	r.log.Warn("the command is restarted after a pause", "pause", d.Round(time.Millisecond))
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// interrupted ends a term during a pause between two runs.
func (w *Wrapper) interrupted() error {
	if w.Once && w.asked() == 0 {
		w.end(CodeLost)
	}
	return nil
}

// stepAside gives up leadership for a while, because the command cannot do its work on this
// machine. It may work on another one.
func (w *Wrapper) stepAside(r *tour) error {
	if w.Once || w.asked() != 0 {
		w.endLater(r)
		return nil
	}
	w.complain(r.log, "the command fails on this machine: other candidates get their turn")
	return tenure.ErrDecline
}

// complain logs an error that may come again in each term, ever less often and with a count:
// without other candidates this one wins one term after the other.
func (w *Wrapper) complain(log *slog.Logger, text string, attrs ...any) {
	times := w.troubles.Admit(loglimit.Cause(fmt.Sprint(text, attrs), ""), time.Since(w.begun))
	if times > 1 {
		attrs = append(attrs, "times", times)
	}
	if times > 0 {
		log.Error(text, attrs...)
	}
}

// endLater ends the campaign with the command's exit code. It also sets the time before which
// Linger does not return.
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

// Linger waits until this process may end. Otherwise a supervisor that starts it again at once,
// over and over, would move leadership as often. Call it after Run and after the store is closed. A
// signal ends the wait.
func (w *Wrapper) Linger() {
	left := time.Until(w.linger)
	if left <= 0 {
		return
	}
	w.Log.Info("the command ended soon after its start, or was not started: tenure waits before it exits, so that leadership does not move at each restart by a supervisor",
		"wait", left.Round(time.Millisecond))
	select {
	case <-time.After(left):
	case <-w.stop.Done():
	}
}
