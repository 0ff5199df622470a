//go:build unix

package wrap

import (
	"context"
	"log/slog"
	"syscall"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
)

// tour is the run of the command in one term.
type tour struct {
	w    *Wrapper
	term *tenure.Term
	log  *slog.Logger
	run  *guard.Run
	pid  int // of the command; 0 until it has started
	tty  terminal
	late *time.Timer // rings if nothing was heard of the command

	asked  bool              // to finish
	failed *guard.StartError // to start
	ended  *guard.Ending     // nil until it has
	own    bool              // it ended by itself, while this process led
	empty  bool              // nothing is left of it
	begun  time.Time         // when the run was ordered
	lasted time.Duration     // from then to the command's end
}

// follow runs the command and returns when nothing of it is left.
func (r *tour) follow(ctx context.Context) {
	g := r.w.present()
	r.begun = time.Now()
	// also if it does not take the order
	r.late = time.AfterFunc(max(r.term.Remaining()/2, leastPatience), func() { r.abandon(g) })
	defer r.late.Stop()
	r.run = g.Run(r.command(), r.term.Remaining, r.w.StopWithin)
	r.w.work(g)
	defer r.w.work(nil)
	soft, hard, renewed, atOnce := ctx.Done(), r.term.Context().Done(), r.term.Renewed(), r.w.atOnce
	for {
		select {
		case e, ok := <-r.run.Events:
			if !ok {
				r.finished(g)
				return
			}
			r.hear(e)
		case <-renewed:
			renewed = r.nextRenewal()
			g.Renewed()
		case <-soft:
			soft = nil
			r.ask(g, context.Cause(ctx))
		case <-atOnce:
			atOnce = nil
			g.Kill()
			defer time.AfterFunc(killWithin, g.Abandon).Stop()
		case <-hard: // the guard learns it by the last renewal
			hard = nil
			defer time.AfterFunc(r.last(), g.Abandon).Stop()
		}
	}
}

// killWithin is the time for a guard to kill a command at once. A guard that does not is stopped,
// or hangs, and is killed itself, which ends the command.
const killWithin = time.Second

// last is the same for the end of a term: later than the guard's own time, and before any other
// candidate leads.
func (r *tour) last() time.Duration {
	stop := r.w.StopWithin
	return stop - guard.Reserve(stop)/2
}

// leastPatience is for a guard that has to say that the term is over already.
const leastPatience = 100 * time.Millisecond

// command tells the command the election, the ID and the token.
func (r *tour) command() guard.Command {
	return guard.NewCommand(r.w.Path, r.w.Args, append(environment(),
		"TENURE_ELECTION="+r.term.Election(), "TENURE_ID="+r.w.election.ID(), "TENURE_TOKEN="+token(r.term)))
}

// nextRenewal is nil when there will be none.
func (r *tour) nextRenewal() <-chan struct{} {
	next := r.term.Renewed()
	if r.term.Err() != nil {
		return nil
	}
	return next
}

// ask has the command finish. If the lease is lost the guard does so, which also sees to it that it
// ends in time.
func (r *tour) ask(g *guard.Guard, why error) {
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

// abandon gives a guard up that has not even started the command: it hangs or is stopped, and the
// next term has another.
func (r *tour) abandon(g *guard.Guard) {
	r.log.Error("the guard does not answer: it is killed")
	g.Abandon()
}

func (r *tour) hear(e guard.Event) {
	r.late.Stop()
	switch {
	case e.Started != 0:
		r.pid = e.Started
		r.tty = lend(r.pid)
		r.log.Info("command started", "pid", r.pid)
	case e.Failed != nil:
		r.failed = explained(r.w.Path, e.Failed)
		r.w.complain(r.log, "command not started", "cause", r.failed)
	case e.Ended != nil:
		r.lasted = time.Since(r.begun)
		r.ended, r.own = e.Ended, !r.asked && !e.Ended.Forced && r.term.Err() == nil
		r.tty.back()
		r.log.Info("command ended", "pid", r.pid, "code", e.Ended.ExitCode())
	case e.Empty:
		r.empty = true
	}
}

// code is the command's exit code, 0 if there was no command.
func (r *tour) code() int {
	if r.ended == nil {
		return 0
	}
	return r.ended.ExitCode()
}

// sweep waits for the remaining processes, because nothing may be released before they end. If they
// never end, a second signal ends this process, and the lease expires.
func (r *tour) sweep() {
	defer time.AfterFunc(killWithin, func() {
		r.log.Error("what is left of the command cannot be killed, and is waited for", "pid", r.pid)
	}).Stop()
	if !guard.Sweep(r.pid, r.w.atOnce) {
		r.w.Quit(CodeFailed)
	}
}

// finished makes sure that nothing is left. A guard that has died may have left something.
func (r *tour) finished(g *guard.Guard) {
	if r.empty {
		return
	}
	<-g.Dead()
	r.log.Error("guard died", "cause", g.Err())
	r.sweep()
	r.tty.back()
	if r.ended == nil && r.pid != 0 {
		r.ended = &guard.Ending{Signal: int(syscall.SIGKILL), Forced: true}
	}
}
