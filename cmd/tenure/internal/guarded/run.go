//go:build unix

// Package guarded runs a command under a guard, within one term of a leader. It starts the command,
// asks it to finish, and returns when neither the command nor a descendant of it is left. Commands
// differ in when they run: package wrap runs one for as long as this process leads, package jobs
// runs those that are due.
package guarded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/timing"
	"golang.org/x/sys/unix"
)

// The exit codes of commands that could not be run, clear of those that commands use.
const (
	CodeFailed      = 125 // no election could be held
	CodeNotRunnable = 126 // the command exists but cannot be executed
	CodeNotFound    = 127
)

// LeastStopWithin is enough time for a command to receive SIGTERM, and for SIGKILL to take effect.
const LeastStopWithin = 100 * time.Millisecond

// Run is one run of a command, in one term. Set the fields of the first part, and call Follow once.
// It sets the fields of the second part.
type Run struct {
	Guard   *guard.Guard // runs no other command
	Term    *tenure.Term
	Command guard.Command
	// StopWithin is that of the election's Config.
	StopWithin time.Duration
	// KillAfter is the time from the request to finish until SIGKILL; 0: the term sets the limit.
	KillAfter time.Duration
	// Request is the request to end this process. A second one kills the command.
	Request *Request
	// Log has the progress at Level.
	Log   *slog.Logger
	Level slog.Level
	// Quit ends this process at once, without a release.
	Quit func()

	Asked  bool              // the command was asked to finish
	Failed *guard.StartError // the command could not be started; else nil
	Ended  *guard.Ending     // nil until the command has ended
	Own    bool              // the command ended by itself, while this process led
	Begun  time.Time         // when the run was ordered
	Lasted time.Duration     // from Begun to the command's end

	run   *guard.Run
	pid   int         // of the command; 0 until it has started
	late  *time.Timer // fires if the guard has not reported anything
	empty bool        // no descendant of the command is left
}

// Follow runs the command, and returns when neither it nor a descendant of it is left. The end of
// ctx asks the command to finish, and the guard ends it when the lease is lost.
func (r *Run) Follow(ctx context.Context) {
	g := r.Guard
	r.Begun = time.Now()
	// set before the order, since a guard that hangs may not read that
	r.late = time.AfterFunc(max(r.Term.Remaining()/2, leastPatience), func() {
		// it hangs or is stopped; the next run gets another one
		r.Log.Error("the guard does not answer: it is killed")
		g.Abandon()
	})
	defer r.late.Stop()
	r.run = g.Run(r.Command, r.Term.Remaining, r.StopWithin)
	defer reclaim()
	finish, lease, renewed, atOnce := ctx.Done(), r.Term.LeaseContext().Done(), timing.Renewed(r.Term), r.Request.AtOnce()
	for {
		select {
		case e, ok := <-r.run.Events:
			if !ok {
				r.finished()
				return
			}
			r.hear(e)
		case <-renewed:
			if renewed = timing.Renewed(r.Term); r.Term.Err() != nil {
				renewed = nil // the term is over
			}
			g.Renewed()
		case <-finish:
			finish = nil
			if r.ask(context.Cause(ctx)) && r.KillAfter > 0 {
				defer r.kill(r.KillAfter)()
			}
		case <-atOnce:
			atOnce = nil
			defer r.kill(0)()
		case <-lease: // the guard knows this deadline from the last renewal
			lease = nil
			defer time.AfterFunc(r.last(), g.Abandon).Stop()
		}
	}
}

// killWithin is the time for a guard to kill a command at once. A guard that takes longer is
// stopped or hangs. Then it is killed itself, which ends the command.
const killWithin = time.Second

// kill makes the guard kill the command after a time, unless the result is called before.
func (r *Run) kill(after time.Duration) (stop func()) {
	if after == 0 {
		r.Guard.Kill()
	}
	order := time.AfterFunc(after, r.Guard.Kill)
	abandon := time.AfterFunc(after+killWithin, r.Guard.Abandon)
	return func() {
		order.Stop()
		abandon.Stop()
	}
}

// last returns the time after the deadline of a term at which a guard that still runs a command is
// killed: later than the guard's own SIGKILL, and before any other candidate leads.
func (r *Run) last() time.Duration { return r.StopWithin - guard.Reserve(r.StopWithin)/2 }

// leastPatience is the least time for a guard to answer, also if the term is over already.
const leastPatience = 100 * time.Millisecond

// ask asks the command to finish. If the lease is lost, it only logs that and returns false: then
// the guard asks the command, and ends it in time.
func (r *Run) ask(why error) bool {
	if r.Term.Err() != nil {
		r.Log.Warn("lost: the command is stopped", "cause", r.Term.Err())
		return false
	}
	s := r.Request.Signal()
	if s == 0 {
		s = syscall.SIGTERM
	}
	r.Asked = true
	r.Log.Info("the command is asked to finish", "cause", why, "signal", s.String())
	r.Guard.Signal(s, true)
	return true
}

func (r *Run) hear(e guard.Event) {
	r.late.Stop()
	switch {
	case e.Started != 0:
		r.pid = e.Started
		r.Log.Log(context.Background(), r.Level, "command started", "pid", r.pid)
	case e.Failed != nil:
		r.Failed = explained(string(r.Command.Path), e.Failed)
	case e.Ended != nil:
		r.Lasted = time.Since(r.Begun)
		r.Ended, r.Own = e.Ended, !r.Asked && !e.Ended.Forced && r.Term.Err() == nil
		r.Log.Log(context.Background(), r.Level, "command ended", "pid", r.pid, "code", e.Ended.ExitCode())
	case e.Empty:
		r.empty = true
	}
}

// Code returns the command's exit code, or that of a command that could not be started. It is 0 if
// the command was not to be started any more.
func (r *Run) Code() int {
	switch {
	case r.Ended != nil:
		return r.Ended.ExitCode()
	case r.Failed == nil:
		return 0
	case r.Failed.Missing:
		return CodeNotFound
	}
	return CodeNotRunnable
}

// lateness is the time by which a guard is ahead of this process in noticing that a lease is over:
// it counts from before it asks.
const lateness = 100 * time.Millisecond

// Err returns nil if the command has ended by itself with code 0, or why it has not. The error has
// a method ExitCode. If the guard has ended the command because the lease is over, so is the term.
func (r *Run) Err() error {
	forced := r.Ended != nil && r.Ended.Forced && !r.Asked
	if forced && r.Term.Remaining() < lateness {
		select {
		case <-r.Term.LeaseContext().Done():
		case <-time.After(2 * lateness): // a renewal was confirmed since
		}
	}
	switch {
	case r.Failed != nil:
		return &Error{r.Failed.Text, r.Code()}
	case r.Ended == nil:
		return &Error{"the command was not started", CodeFailed}
	case r.Ended.Signal != 0:
		return &Error{fmt.Sprintf("ended by signal %d (%v)", r.Ended.Signal, syscall.Signal(r.Ended.Signal)), r.Code()}
	case r.Ended.Code != 0:
		return &Error{fmt.Sprintf("exit code %d", r.Ended.Code), r.Code()}
	case forced:
		return &Error{"the guard asked it to end", 128 + int(syscall.SIGTERM)}
	}
	return nil
}

// Error is the failure of a command.
type Error struct {
	text string
	code int
}

func (e *Error) Error() string { return e.text }

// ExitCode returns the code as a shell would report it.
func (e *Error) ExitCode() int { return e.code }

// sweep waits for the remaining processes, because nothing may be released before they end. If they
// never end, a second signal ends this process, and the lease expires.
func (r *Run) sweep() {
	defer time.AfterFunc(killWithin, func() {
		r.Log.Error("processes of the command cannot be killed: tenure waits until they end", "pid", r.pid)
	}).Stop()
	if !guard.Sweep(r.pid, r.Request.AtOnce()) {
		r.Quit()
	}
}

// finished makes sure that no descendant of the command is left, if the guard has died.
func (r *Run) finished() {
	if r.empty {
		return
	}
	g := r.Guard
	<-g.Dead()
	if r.Term.Remaining() <= 0 { // the kernel or this process has killed it, as intended
		r.Log.Warn("the lease ran out while the guard could not act, for example while the machine was suspended: the guard and what is left of the command are killed", "cause", g.Err())
	} else {
		r.Log.Error("the guard died: what is left of the command is killed", "cause", g.Err())
	}
	r.sweep()
	if r.Ended == nil && r.pid != 0 {
		r.Ended = &guard.Ending{Signal: int(syscall.SIGKILL), Forced: true}
	}
}

// HoldTerminal prevents Ctrl-Z from stopping this process, until the returned function is called:
// the time of a lease would go on.
func HoldTerminal() (release func()) {
	signal.Ignore(unix.SIGTSTP)
	return func() { signal.Reset(unix.SIGTSTP) }
}

// reclaim takes the terminal back if the guard has lent it to a command that is gone. It ignores
// SIGTTOU, by which the system would stop a background process that does this.
func reclaim() {
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(tty) }()
	owner, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	if err != nil || !errors.Is(unix.Kill(-owner, 0), unix.ESRCH) {
		return
	}
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, unix.Getpgrp())
}
