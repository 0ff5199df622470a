//go:build unix

// Package wrap runs a command for as long as this process leads an election, and no longer.
package wrap

import (
	"context"
	"log/slog"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/internal/loglimit"
)

// The exit codes of a wrapper, clear of those that commands use.
const (
	CodeLost        = 121 // with Once: leadership was lost or handed over
	CodeFailed      = 125 // no election could be held
	CodeNotRunnable = 126 // the command exists but cannot be executed
	CodeNotFound    = 127
)

// Options say what to run and how.
type Options struct {
	// Path is the command's file, Args are all its arguments, with the name in front.
	Path string
	Args []string
	// Unset are variables of this process's environment that the command does not get.
	Unset []string
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

// Wrapper is a candidate that runs a command while it leads.
type Wrapper struct {
	Options
	election *tenure.Election

	ctx   context.Context // the campaign
	leave context.CancelFunc

	mu       sync.Mutex
	guard    *guard.Guard   // nil until the first one; it may be dead
	running  *guard.Guard   // the guard while there is a command
	signal   syscall.Signal // the signal that asked this process to end, or 0
	signaled time.Time      // when it came
	code     int
	linger   time.Time // Linger waits until then; zero: it does not wait

	stop   context.Context // ends when a signal asks this process to end
	halt   context.CancelFunc
	atOnce chan struct{} // closed when a second signal asks to kill the command

	begun    time.Time
	troubles loglimit.Limiter // for errors that may come again in each term
}

// New starts a guard, so that there is one when this process is elected. It returns an error if
// that fails.
func New(o Options) (*Wrapper, error) {
	guard.Adopt()
	w := &Wrapper{Options: o, atOnce: make(chan struct{}), begun: time.Now()}
	w.ctx, w.leave = context.WithCancel(context.Background())
	w.stop, w.halt = context.WithCancel(context.Background())
	return w, w.ready()
}

// Run takes part in the election until the command has ended by itself, or a signal was received
// and the command has ended. It returns the exit code, and with CodeFailed the reason.
func (w *Wrapper) Run(e *tenure.Election) (code int, err error) {
	w.election = e
	defer guard.KeepSmall(settled)()
	err = e.Run(w.ctx, w.lead)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && (w.code == 0 || w.code == CodeFailed) {
		return CodeFailed, err
	}
	return w.code, nil
}

// settled is the time after which a candidate has started up. Connecting to the store needs memory
// that waiting does not.
const settled = 5 * time.Second

// Close ends the guard.
func (w *Wrapper) Close() { w.present().Close() }

// Context ends when a signal has asked this process to end, or the command has ended.
func (w *Wrapper) Context() context.Context { return w.ctx }

// Bury reaps orphans. Call it in the first process of a container, which adopts them.
func (w *Wrapper) Bury() { w.present().Bury() }

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
	defer unsuspended()()
	for failures := 0; ; {
		if err := w.ready(); err != nil {
			w.end(CodeFailed)
			return err
		}
		r := &tour{w: w, term: t, log: w.Log.With("term", t.Token())}
		r.follow(ctx)
		if !w.restarts(r) {
			return w.conclude(r)
		}
		failures = r.failures(failures)
		if failures == mostFailures {
			return w.stepAside(r)
		}
		if !r.rest(ctx, pause(failures)) {
			return w.interrupted()
		}
	}
}

// conclude decides how to go on. If the wrapper has to end, it ends the campaign first. Otherwise
// the election would go on if the lease were lost at that moment.
func (w *Wrapper) conclude(r *tour) error {
	switch {
	case r.failed != nil && !r.failed.Passing:
		return w.stepAside(r)
	case r.own, w.asked() != 0:
		w.endLater(r)
	case w.Once:
		w.end(CodeLost)
	case !r.asked && r.term.Err() == nil: // the guard has ended it, or has died
		return tenure.ErrDecline // pauses before the next term, in case each guard does that
	}
	return nil
}

func startCode(e *guard.StartError) int {
	if e.Missing {
		return CodeNotFound
	}
	return CodeNotRunnable
}

// end ends the campaign with an exit code.
func (w *Wrapper) end(code int) {
	w.mu.Lock()
	w.code = code
	w.mu.Unlock()
	w.leave()
}

// asked returns the signal that asked this process to end, or 0.
func (w *Wrapper) asked() syscall.Signal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.signal
}

// work notes the guard that runs a command, or with nil that no command runs.
func (w *Wrapper) work(g *guard.Guard) {
	w.mu.Lock()
	w.running = g
	w.mu.Unlock()
}

// oneSignal is the time in which a second signal is taken for the first one: timeout(1) signals
// this process, and then its process group.
const oneSignal = 300 * time.Millisecond

// Hear reacts to a signal. SIGTERM and SIGINT end the wrapper; a second one kills the command at
// once. Other signals go to the command. Without a command, SIGHUP and SIGQUIT end the wrapper as
// SIGTERM does.
func (w *Wrapper) Hear(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch ends := s == syscall.SIGTERM || s == syscall.SIGINT; {
	case ends && w.signal == s && time.Since(w.signaled) < oneSignal:
	case ends && w.signal != 0:
		select {
		case <-w.atOnce:
		default:
			close(w.atOnce)
		}
	case ends, w.running == nil && (s == syscall.SIGHUP || s == syscall.SIGQUIT):
		w.Log.Info("tenure is asked to end", "signal", s.String())
		w.signal, w.signaled = s, time.Now()
		w.leave()
		w.halt()
	case w.running != nil:
		w.running.Signal(s, false)
	}
}

// LeastStopWithin is enough time for a command to receive SIGTERM, and for SIGKILL to take effect.
const LeastStopWithin = 100 * time.Millisecond

// StopWithin returns the default of --stop-within: the part of the lease in which the command ends
// after the lease is lost.
func StopWithin(lease time.Duration) time.Duration { return min(lease/5, 5*time.Second) }
