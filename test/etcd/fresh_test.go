//go:build integration

package etcd

import (
	"context"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// credulous takes every state for the latest one: a planted mistake. It pushes nothing.
type credulous struct{ driver.Store }

func (c credulous) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := c.Store.Read(ctx, key)
	e.Unproven = false
	return e, err
}

// TestFreshCandidateAfterARestore: the snapshot has a release of an earlier term. The leader of a
// later term is cut off, and trusts its lease. A candidate that starts after the restore must wait
// until that lease has ended. One that takes the release for the last state leads at once.
func TestFreshCandidateAfterARestore(t *testing.T) {
	t.Parallel()
	t.Run("with the rule", func(t *testing.T) {
		t.Parallel()
		if overlap(t, func(s driver.Store) driver.Store { return s }) {
			t.Error("two candidates led at once")
		}
	})
	t.Run("without the rule", func(t *testing.T) {
		t.Parallel()
		// On a slow machine the lease may end before the restore does.
		wait.Until(t, "two leaders at once", func() bool {
			return overlap(t, func(s driver.Store) driver.Store { return credulous{s} })
		})
	})
}

// overlap reports whether a fresh candidate leads while the leader that is cut off may still act.
func overlap(t *testing.T, open func(driver.Store) driver.Store) bool {
	t.Helper()
	p := start(t)
	lead(t, p.store, time.Second, func(*tenure.Term) {})
	snapshot := etcdd.Snapshot(t, p.Cluster)
	store, way := p.Open(t, 0)
	both := false
	lead(t, store, 10*time.Second, func(former *tenure.Term) {
		way.Blackhole()
		p.restored(snapshot, "another")
		lead(t, open(p.Direct(t)), 10*time.Second, func(*tenure.Term) { both = former.Err() == nil })
	})
	way.Heal()
	return both
}

// lead calls do while a new candidate leads.
func lead(t *testing.T, s driver.Store, lease time.Duration, do func(*tenure.Term)) {
	t.Helper()
	e, err := tenure.New(s, key, tenure.Config{ID: t.Name(), Lease: lease})
	rig.Must(t, err)
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	rig.Must(t, e.Run(ctx, func(_ context.Context, term *tenure.Term) error {
		do(term)
		cancel() // so that a leader that lost its term does not campaign again
		return nil
	}))
}
