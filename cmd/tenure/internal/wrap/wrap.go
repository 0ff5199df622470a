//go:build unix

// Package wrap runs a command for as long as this process leads an election, and no longer.
package wrap

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/internal/loglimit"
	"github.com/tenure-go/tenure/slots"
)

// The exit codes of a wrapper besides those of package guarded, clear of those that commands use.
const (
	CodeLost       = 121 // with Once: leadership was lost or handed over
	CodeNotElected = 122 // GiveUp ended the campaign
)

// Options say what to run and how.
type Options struct {
	// Path is the command's file, Args are all its arguments, with the name in front.
	Path string
	Args []string
	// Unset are variables of this process's environment that the command does not get.
	Unset []string
	// Gate, if set, is called in each term in place of the command. It calls run, which runs the
	// command with these variables, once or not at all. Without a run it returns why the command
	// never runs, which is as if GiveUp was called with that, or nil for another term.
	Gate func(ctx context.Context, t *tenure.Term, run func(set ...string) *guarded.Run) (never error)
	// Once makes Run return when leadership is over for any reason, instead of campaigning again.
	Once bool
	// Restart says after which ends the command is run again in the same term. Its zero value is
	// RestartNever.
	Restart Restart
	// StopWithin is that of the election's Config.
	StopWithin time.Duration
	// Guard returns the command line of a guard, which must call guard.Main.
	Guard func() *exec.Cmd
	Log   *slog.Logger
	// Quit ends this process at once, without a release.
	Quit func(code int)
}

// Candidate is a tenure.Election, or takes part in several elections and leads one at a time.
type Candidate interface {
	ID() string
	Run(ctx context.Context, lead tenure.Lead) error
}

// Wrapper is a candidate that runs a command while it leads.
type Wrapper struct {
	Options
	election Candidate

	ctx   context.Context // the campaign
	leave context.CancelFunc

	request guarded.Request

	mu      sync.Mutex
	guard   *guard.Guard // nil until the first one; it may be dead
	running *guard.Guard // the guard while there is a command
	led     bool         // the command has begun, or is about to
	givenUp error        // why it will not begin, or nil
	code    int
	linger  time.Time // Linger waits until then; zero: it does not wait

	begun    time.Time
	troubles loglimit.Limiter // for errors that may come again in each term
}

// New starts a guard, so that there is one when this process is elected. It returns an error if
// that fails.
func New(o Options) (*Wrapper, error) {
	guard.Adopt()
	w := &Wrapper{Options: o, begun: time.Now()}
	w.ctx, w.leave = context.WithCancel(context.Background())
	return w, w.ready()
}

// Run takes part in the election until the command has ended by itself, or a signal was received
// and the command has ended. It returns the exit code, and with guarded.CodeFailed the reason.
func (w *Wrapper) Run(e Candidate) (code int, err error) {
	w.election = e
	defer guard.KeepSmall(startUp)()
	err = e.Run(w.ctx, w.lead)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && (w.code == 0 || w.code == guarded.CodeFailed) {
		return guarded.CodeFailed, err
	}
	return w.code, nil
}

// startUp is the time after which a candidate has started up. Connecting to the store needs memory
// that waiting does not.
const startUp = 5 * time.Second

// Close ends the guard.
func (w *Wrapper) Close() { w.present().Close() }

// Context ends when a signal has asked this process to end, the command has ended, or GiveUp ended
// the campaign.
func (w *Wrapper) Context() context.Context { return w.ctx }

// GiveUp ends the campaign for this reason, unless it was asked to end or the command has begun.
// Then the command never begins, and a claim that wins all the same is released.
func (w *Wrapper) GiveUp(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.led || w.asked() != 0 || w.givenUp != nil {
		return
	}
	w.givenUp = reason // first: the end of the campaign makes the caller of Run ask for it
	w.leave()
}

// GivenUp returns the reason of the GiveUp that ended the campaign, or nil.
func (w *Wrapper) GivenUp() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.givenUp
}

// begin reports whether the command may begin.
func (w *Wrapper) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.led = w.givenUp == nil
	return w.led
}

// ready starts a guard if there is none, or it is dead.
func (w *Wrapper) ready() error {
	if g := w.present(); g != nil && !g.Gone() {
		return nil
	}
	g, err := guard.Start(w.Guard())
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.guard = g
	return nil
}

func (w *Wrapper) present() *guard.Guard {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.guard
}

// lead runs the command for one term: once, unless it is restarted.
func (w *Wrapper) lead(ctx context.Context, t *tenure.Term) error {
	if !w.begin() {
		return nil
	}
	defer guarded.HoldTerminal()()
	if w.Gate != nil {
		return w.atGate(ctx, t)
	}
	for failures := 0; ; {
		if err := w.ready(); err != nil {
			w.end(guarded.CodeFailed)
			return err
		}
		r := w.follow(ctx, t)
		if !w.restarts(r) {
			return w.conclude(r)
		}
		failures = failuresAfter(r, failures)
		if failures == mostFailures {
			return w.stepAside(r)
		}
		if !rest(ctx, r, pause(failures)) { // the term ends between two runs
			if w.Once && w.asked() == 0 {
				w.end(CodeLost)
			}
			return nil
		}
	}
}

// atGate runs the command if Gate lets it.
func (w *Wrapper) atGate(ctx context.Context, t *tenure.Term) error {
	if err := w.ready(); err != nil {
		w.end(guarded.CodeFailed)
		return err
	}
	var r *guarded.Run
	never := w.Gate(ctx, t, func(set ...string) *guarded.Run {
		r = w.follow(ctx, t, set...)
		return r
	})
	switch {
	case r != nil && r.Failed != nil:
		w.endLater(r)
		return nil
	case r != nil:
		return w.conclude(r)
	}
	w.mu.Lock()
	w.led = false
	w.mu.Unlock()
	if never != nil {
		w.GiveUp(never)
	}
	return nil
}

// follow runs the command once, with these variables.
func (w *Wrapper) follow(ctx context.Context, t *tenure.Term, set ...string) *guarded.Run {
	r := &guarded.Run{
		Guard: w.present(), Term: t, Command: w.command(t, set), StopWithin: w.StopWithin, Request: &w.request,
		Log: w.Log.With("term", t.Token()), Quit: func() { w.Quit(guarded.CodeFailed) },
	}
	w.work(r.Guard)
	defer w.work(nil)
	r.Follow(ctx)
	if r.Failed != nil {
		w.complain(r.Log, "command not started", "cause", r.Failed)
	}
	return r
}

// command returns the command. It finds the election, the ID and the token in its environment.
func (w *Wrapper) command(t *tenure.Term, set []string) guard.Command {
	set = append(set, "TENURE_ELECTION="+t.Election(), "TENURE_ID="+w.election.ID(), fmt.Sprint("TENURE_TOKEN=", t.Token()))
	if n := slots.Number(t); n > 0 {
		set = append(set, fmt.Sprint("TENURE_SLOT=", n))
	}
	return guard.NewCommand(w.Path, w.Args, guarded.Environment(w.Unset, set...))
}

// conclude decides how to go on. If the wrapper has to end, it ends the campaign first. Otherwise
// the election would go on if the lease were lost at that moment.
func (w *Wrapper) conclude(r *guarded.Run) error {
	switch {
	case r.Failed != nil && !r.Failed.Passing:
		return w.stepAside(r)
	case r.Own, w.asked() != 0:
		w.endLater(r)
	case w.Once:
		w.end(CodeLost)
	case !r.Asked && r.Term.Err() == nil: // the guard has ended it, or has died
		return tenure.ErrDecline // pauses before the next term, in case each guard does that
	}
	return nil
}

// end ends the campaign with an exit code.
func (w *Wrapper) end(code int) {
	w.mu.Lock()
	w.code = code
	w.mu.Unlock()
	w.leave()
}

// asked returns the signal that asked this process to end, or 0.
func (w *Wrapper) asked() syscall.Signal { return w.request.Signal() }

// work notes the guard that runs a command, or with nil that no command runs.
func (w *Wrapper) work(g *guard.Guard) {
	w.mu.Lock()
	w.running = g
	w.mu.Unlock()
}

// Hear reacts to a signal. SIGTERM and SIGINT end the wrapper; a second one kills the command at
// once. Other signals go to the command. Without a command, SIGHUP and SIGQUIT end the wrapper as
// SIGTERM does.
func (w *Wrapper) Hear(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ends := s == syscall.SIGTERM || s == syscall.SIGINT || w.running == nil && (s == syscall.SIGHUP || s == syscall.SIGQUIT)
	switch {
	case ends && w.request.Hear(s):
		w.Log.Info("tenure is asked to end", "signal", s.String())
		w.leave()
	case !ends && w.running != nil:
		w.running.Signal(s, false)
	}
}

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
func (w *Wrapper) restarts(r *guarded.Run) bool {
	if !r.Own || w.asked() != 0 {
		return false
	}
	return w.Restart == RestartAlways || w.Restart == RestartOnFailure && r.Code() != 0
}

// failuresAfter returns the number of failures in a row that came soon after the start.
func failuresAfter(r *guarded.Run, before int) int {
	if r.Code() == 0 || r.Lasted >= healthy {
		return 0
	}
	return before + 1
}

// rest waits while no command runs and the lease is still renewed. It returns false if the work has
// to finish before the pause is over.
func rest(ctx context.Context, r *guarded.Run, d time.Duration) bool {
	r.Log.Warn("the command is restarted after a pause", "pause", d.Round(time.Millisecond))
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// stepAside gives up leadership for a while, because the command cannot do its work on this
// machine. It may work on another one.
func (w *Wrapper) stepAside(r *guarded.Run) error {
	if w.Once || w.asked() != 0 {
		w.endLater(r)
		return nil
	}
	w.complain(r.Log, "the command fails on this machine: other candidates get their turn")
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
func (w *Wrapper) endLater(r *guarded.Run) {
	least := leastDone
	code := r.Code()
	if code != 0 {
		least = leastFailed
	}
	if w.asked() == 0 && w.Gate == nil { // a gate lets only one run begin
		w.linger = r.Begun.Add(jitter(least))
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
	case <-w.request.Done():
	}
}
