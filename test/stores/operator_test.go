//go:build integration

package stores

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/reign"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// action is what an operator does to a store. Ready is called before a hand-over, and the function
// that it returns after it.
type action struct {
	name  string
	ready func(t testing.TB) (do func(ctx context.Context, key string) error)
	want  []error // an event has one of them
	whole bool    // it changes more than the election
}

// actions returns those that a site has.
func actions(t *testing.T, s rig.Site, network bool) (all []action) {
	deleted := &tenure.StoreError{Kind: driver.Deleted}
	recreated := &tenure.StoreError{Kind: driver.Recreated}
	regressed := &tenure.StoreError{Kind: driver.Regressed}
	kit := s.Kit(t)
	add := func(name string, do func(context.Context, string) error, want ...error) {
		ready := func(testing.TB) func(context.Context, string) error { return do }
		all = append(all, action{name: name, ready: ready, want: want, whole: name == "recreated"})
	}
	if kit.Delete != nil {
		add("deleted", kit.Delete, deleted)
	}
	if kit.Purge != nil {
		add("purged", kit.Purge, deleted)
	}
	// A counter within this process begins again, so tokens may recur.
	if kit.Recreate != nil && (network || kit.FloorTick > 0) {
		add("recreated", func(ctx context.Context, _ string) error { return kit.Recreate(ctx) }, recreated, deleted)
	}
	if r, ok := s.(rig.Restorer); ok && r.Restores() {
		ready := func(t testing.TB) func(context.Context, string) error {
			restore := r.Backup(t)
			return func(context.Context, string) error { restore(); return nil }
		}
		all = append(all, action{name: "restored", ready: ready, want: []error{regressed, recreated}, whole: true})
	}
	return all
}

// TestOperators: operators and backups change a store under a living leader, which may be cut off
// and then trusts its lease to the end. No other candidate leads beside it, not even one that
// starts just then. No token recurs. An event reports the change with the right error.
func TestOperators(t *testing.T) {
	apart(t, func(t *testing.T, r rig.Rig) {
		faulty(t, r)
		if testing.Short() && (r.SoakElections || r.Shared) {
			t.Skip("the soak does it")
		}
		s := r.Start(t, false)
		_, way := s.Open(t, 0)
		for _, a := range actions(t, s, way != nil) {
			if !a.whole || !testing.Short() || way == nil {
				t.Run(a.name, func(t *testing.T) { a.play(t, s, false) })
			}
			if way != nil && (a.whole || !testing.Short()) {
				t.Run(a.name+" while the leader is cut off", func(t *testing.T) { a.play(t, s, true) })
			}
		}
	})
}

func (a action) play(t *testing.T, s rig.Site, cut bool) {
	stores, ways := three(t, s)
	r := election(t, asking.ByTerm, stores, ways, tenure.Config{Lease: brief})
	for try := 0; wait.Left() > 0; try++ {
		first := r.Leader(0)
		do := a.ready(t)
		handOver(t, first)
		second := r.Leader(first.Token())
		// If the store tells no eras, the restored state misleads a member that has not seen the
		// later one.
		r.Seen(second.Token())
		if cut {
			second.By.Way.Blackhole()
		}
		wait.Succeeds(t, a.name, func(ctx context.Context) error { return do(ctx, r.Key) })
		store, way := s.Open(t, try)
		r.Join(store, way, tenure.Config{ID: fmt.Sprint("fresh", try), Lease: brief})
		r.Leader(second.Token())
		if cut {
			second.By.Way.Heal()
		}
		// On a busy machine a new member may be the first to read, and the others see only its
		// write. The next try comes when there is nothing left to see.
		if wait.Within(5*time.Second, func() bool { return reported(r, a.want) }) {
			return
		}
	}
	t.Errorf("no event has one of these errors: %v", a.want)
}

func reported(r *reign.Reign, want []error) bool {
	for _, err := range want {
		if r.Reported(err) {
			return true
		}
	}
	return false
}

// handOver asks the leader to hand over. A busy machine may cost it the lease instead.
func handOver(t *testing.T, leader reign.Term) {
	t.Helper()
	wait.Succeeds(t, "a hand-over", func(ctx context.Context) error {
		if err := leader.By.HandOver(ctx, ""); err != nil && leader.Err() == nil {
			return err
		}
		return nil
	})
}
