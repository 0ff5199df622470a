//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/cmd/tenure/internal/wrap"
	"github.com/tenure-go/tenure/schedule"
)

// follower decides about the tick of this process: as the leader it runs the command, and until
// then it looks whether another process runs it.
type follower struct {
	patience
	flags *tickFlags
	once  *schedule.Once
	log   *slog.Logger
	// began: the command has begun in this process.
	began bool
}

// gate runs the command, unless the state shows that the tick was run.
func (f *follower) gate(ctx context.Context, t *tenure.Term, run func(set ...string) *guarded.Run) (never error) {
	out, err := f.once.Lead(ctx, t, func(_ context.Context, tick schedule.Tick) error {
		f.began = true
		return run("TENURE_TICK="+nameOf(tick.Name, tick.Planned), fmt.Sprint("TENURE_ATTEMPT=", tick.Attempt)).Err()
	})
	switch {
	case err != nil:
		return err
	case out.Ran && !out.Decided:
		f.log.Error("the end of the run could not be recorded: other machines take it for interrupted")
	case out.Reason != "":
		return notRun(output.Plain(out.Reason))
	case out.Decided:
		return &ran{out.Tick, t.Election()}
	}
	return nil
}

func notRun(why string) error {
	return coded(wrap.CodeNotElected, fmt.Errorf("the command was not run: %s", why))
}

// begin counts the time of --wait from now on. Call stop when the campaign is over.
func (f *follower) begin() (stop func()) {
	ctx, cancel := context.WithCancel(f.wrapper.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for left := f.wait; ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(left):
			}
			if left = f.wait; !f.look(ctx) {
				f.wrapper.GiveUp(f.unelected())
				left = f.flags.lease // if this process leads, it decides first
			}
		}
	}()
	return func() { cancel(); <-done }
}

// follow looks at the state whenever the leader has changed or was seen to renew.
func (f *follower) follow(ctx context.Context) {
	for _, err := range f.election.Load().Watch(ctx) {
		if err == nil { // a denial ends the campaign, too
			f.look(ctx)
		}
	}
}

// look reads the state. It gives up if another process has run this tick, or runs an earlier one,
// and returns whether one runs this tick.
func (f *follower) look(ctx context.Context) (goesOn bool) {
	e := f.election.Load()
	if e == nil || e.Status().Term != 0 { // the store was not reached, or this process leads
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, f.flags.lease/3)
	defer cancel()
	out, err := f.once.Read(ctx)
	s := e.Status()
	// A leader that was seen to renew still runs what its term has begun.
	alive := func(t *schedule.TickStatus) bool {
		return t.State == "started" && s.Confirmed && s.Leader.Term == t.Token
	}
	switch {
	case err != nil:
		f.log.Debug("the state of the tick cannot be read", "cause", err)
	case out.Decided:
		f.wrapper.GiveUp(&ran{out.Tick, f.flags.election})
	case alive(&out.Tick):
		f.log.Info("another machine runs this tick: tenure waits for its end", "runner", out.Tick.ID)
		return true
	case alive(&out.Other) && !f.flags.queue:
		o := &out.Other
		f.wrapper.GiveUp(notRun(fmt.Sprintf("an earlier tick, %s, is still running on %s", nameOf(o.Name, o.Planned), output.Plain(o.ID))))
	}
	return false
}
