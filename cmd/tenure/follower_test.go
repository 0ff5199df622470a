//go:build unix

package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/schedule"
)

// given is a campaign that ends when it is given up.
type given struct {
	ctx    context.Context
	cancel context.CancelFunc
	reason error
}

func (g *given) Context() context.Context { return g.ctx }

func (g *given) GiveUp(reason error) {
	if g.reason == nil {
		g.reason = reason
		g.cancel()
	}
}

// invoked is a process of tick that follows a leader, and does not lead itself.
type invoked struct {
	*follower
	given *given
}

func follow(t *testing.T, store faults.Store, tick string, wait time.Duration, queue bool) *invoked {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	flags := &tickFlags{tick: tick, wait: wait, queue: queue}
	flags.election, flags.lease = "e", 15*time.Second
	p := &invoked{&follower{flags: flags, log: slog.New(slog.DiscardHandler)}, &given{ctx: ctx, cancel: cancel}}
	p.wait, p.wrapper = wait, p.given
	if store != nil {
		e, err := tenure.New(store, "e", tenure.Config{})
		must.OK(t, err)
		p.once, err = flags.once(store, nil)
		must.OK(t, err)
		p.election.Store(e)
		go p.follower.follow(ctx)
	}
	stop := p.begin()
	t.Cleanup(func() { cancel(); stop() })
	return p
}

// gaveUp checks the exit code and the reason; "" if it goes on.
func (p *invoked) gaveUp(t *testing.T, code int, want string) {
	t.Helper()
	synctest.Wait()
	got := ""
	if p.given.reason != nil {
		got = p.given.reason.Error()
	}
	if (got == "") != (want == "") || !strings.Contains(got, want) || got != "" && fault.Code(p.given.reason) != code {
		t.Errorf("the reason is %q, code %d", got, fault.Code(p.given.reason))
	}
}

func TestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		runner, err := tenure.New(inner, "e", tenure.Config{ID: "runner"})
		must.OK(t, err)
		once, err := schedule.NewOnce(inner, "e", schedule.Config{}, schedule.Invocation{Job: "tick", Tick: "a", AtLeastOnce: true})
		must.OK(t, err)
		done := make(chan error, 1)
		go func() {
			done <- runner.Run(t.Context(), func(ctx context.Context, term *tenure.Term) error {
				_, err := once.Lead(ctx, term, func(context.Context, schedule.Tick) error { time.Sleep(3 * time.Hour); return nil })
				return err
			})
		}()
		time.Sleep(time.Minute)
		store := func() faults.Store { return faults.New(inner, 1, faults.Plan{}) }
		apart := store()
		same, cut := follow(t, store(), "a", time.Minute, false), follow(t, apart, "a", time.Minute, false)
		later, queued := follow(t, store(), "b", time.Minute, false), follow(t, store(), "b", time.Minute, true)
		nowhere := follow(t, nil, "a", time.Minute, false)
		time.Sleep(30 * time.Second)
		later.gaveUp(t, 122, "an earlier tick, a, is still running on runner")
		queued.gaveUp(t, 0, "")
		nowhere.gaveUp(t, 0, "")
		apart.Partition()
		time.Sleep(2 * time.Minute)
		queued.gaveUp(t, 122, "runner leads, in term ")
		nowhere.gaveUp(t, 125, "the store has not answered within 1m0s")
		cut.gaveUp(t, 122, "not elected within 1m0s")
		time.Sleep(2 * time.Hour)
		same.gaveUp(t, 0, "") // --wait does not count during the run
		must.OK(t, <-done)
		same.gaveUp(t, 1, "e: this tick ran on runner from ")
	})
}
