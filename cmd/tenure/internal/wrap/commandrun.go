//go:build unix

package wrap

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/slots"
	"github.com/tenure-go/tenure/timing"
	"golang.org/x/sys/unix"
)

// commandRun is one run of the command, in one term.
type commandRun struct {
	w    *Wrapper
	term *tenure.Term
	log  *slog.Logger
	run  *guard.Run
	pid  int         // of the command; 0 until it has started
	late *time.Timer // fires if the guard has not reported anything

	asked  bool              // the command was asked to finish
	failed *guard.StartError // the command could not be started; else nil
	ended  *guard.Ending     // nil until the command has ended
	own    bool              // the command ended by itself, while this process led
	empty  bool              // no descendant of the command is left
	begun  time.Time         // when the run was ordered
	lasted time.Duration     // from begun to the command's end
}

// follow runs the command, and returns when neither it nor a descendant of it is left.
func (r *commandRun) follow(ctx context.Context) {
	g := r.w.present()
	r.begun = time.Now()
	// set before the order, since a guard that hangs may not read that
	r.late = time.AfterFunc(max(r.term.Remaining()/2, leastPatience), func() {
		// it hangs or is stopped; the next term gets another one
		r.log.Error("the guard does not answer: it is killed")
		g.Abandon()
	})
	defer r.late.Stop()
	r.run = g.Run(r.command(), r.term.Remaining, r.w.StopWithin)
	r.w.work(g)
	defer r.w.work(nil)
	defer reclaim()
	finish, lease, renewed, atOnce := ctx.Done(), r.term.LeaseContext().Done(), timing.Renewed(r.term), r.w.atOnce
	for {
		select {
		case e, ok := <-r.run.Events:
			if !ok {
				r.finished(g)
				return
			}
			r.hear(e)
		case <-renewed:
			if renewed = timing.Renewed(r.term); r.term.Err() != nil {
				renewed = nil // the term is over
			}
			g.Renewed()
		case <-finish:
			finish = nil
			r.ask(g, context.Cause(ctx))
		case <-atOnce:
			atOnce = nil
			g.Kill()
			defer time.AfterFunc(killWithin, g.Abandon).Stop()
		case <-lease: // the guard knows this deadline from the last renewal
			lease = nil
			defer time.AfterFunc(r.last(), g.Abandon).Stop()
		}
	}
}

// killWithin is the time for a guard to kill a command at once. A guard that takes longer is
// stopped or hangs. Then it is killed itself, which ends the command.
const killWithin = time.Second

// last returns the time after the deadline of a term at which a guard that still runs a command is
// killed: later than the guard's own SIGKILL, and before any other candidate leads.
func (r *commandRun) last() time.Duration {
	stop := r.w.StopWithin
	return stop - guard.Reserve(stop)/2
}

// leastPatience is the least time for a guard to answer, also if the term is over already.
const leastPatience = 100 * time.Millisecond

// command returns the command. Its environment is that of this process, with the election, the ID
// and the token, and without Unset. Variables that are set again are left out first: some programs
// use the first of two variables with the same name.
func (r *commandRun) command() guard.Command {
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(told, name) || slices.Contains(r.w.Unset, name)
	})
	environment = append(environment,
		"TENURE_ELECTION="+r.term.Election(), "TENURE_ID="+r.w.election.ID(), "TENURE_TOKEN="+token(r.term))
	if n := slots.Number(r.term); n > 0 {
		environment = append(environment, "TENURE_SLOT="+strconv.Itoa(n))
	}
	return guard.NewCommand(r.w.Path, r.w.Args, environment)
}

// ask asks the command to finish. If the lease is lost, it only logs that: then the guard asks the
// command, and ends it in time.
func (r *commandRun) ask(g *guard.Guard, why error) {
	if r.term.Err() != nil {
		r.log.Warn("lost: the command is stopped", "cause", r.term.Err())
		return
	}
	s := r.w.asked()
	if s == 0 {
		s = syscall.SIGTERM
	}
	r.asked = true
	r.log.Info("asked to leave: the command is asked to finish", "cause", why, "signal", s.String())
	g.Signal(s, true)
}

func (r *commandRun) hear(e guard.Event) {
	r.late.Stop()
	switch {
	case e.Started != 0:
		r.pid = e.Started
		r.log.Info("command started", "pid", r.pid)
	case e.Failed != nil:
		r.failed = explained(r.w.Path, e.Failed)
		r.w.complain(r.log, "command not started", "cause", r.failed)
	case e.Ended != nil:
		r.lasted = time.Since(r.begun)
		r.ended, r.own = e.Ended, !r.asked && !e.Ended.Forced && r.term.Err() == nil
		r.log.Info("command ended", "pid", r.pid, "code", e.Ended.ExitCode())
	case e.Empty:
		r.empty = true
	}
}

// code returns the command's exit code, or 0 if there was no command.
func (r *commandRun) code() int {
	if r.ended == nil {
		return 0
	}
	return r.ended.ExitCode()
}

// sweep waits for the remaining processes, because nothing may be released before they end. If they
// never end, a second signal ends this process, and the lease expires.
func (r *commandRun) sweep() {
	defer time.AfterFunc(killWithin, func() {
		r.log.Error("processes of the command cannot be killed: tenure waits until they end", "pid", r.pid)
	}).Stop()
	if !guard.Sweep(r.pid, r.w.atOnce) {
		r.w.Quit(CodeFailed)
	}
}

// finished makes sure that no descendant of the command is left, if the guard has died.
func (r *commandRun) finished(g *guard.Guard) {
	if r.empty {
		return
	}
	<-g.Dead()
	if r.term.Remaining() <= 0 { // the kernel or this process has killed it, as intended
		r.log.Warn("the lease ran out while the guard could not act, for example while the machine was suspended: the guard and what is left of the command are killed", "cause", g.Err())
	} else {
		r.log.Error("the guard died: what is left of the command is killed", "cause", g.Err())
	}
	r.sweep()
	if r.ended == nil && r.pid != 0 {
		r.ended = &guard.Ending{Signal: int(syscall.SIGKILL), Forced: true}
	}
}

// told are the variables that are set for the command.
var told = []string{"TENURE_ELECTION", "TENURE_ID", "TENURE_TOKEN", "TENURE_SLOT"}

func token(t *tenure.Term) string { return strconv.FormatUint(t.Token(), 10) }

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
