//go:build integration

package etcd

import (
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

const key = "billing"

// place is a cluster of one member, and a store on it.
type place struct {
	*etcdd.Site
	t     *testing.T
	store driver.Store
}

func start(t *testing.T) place {
	t.Helper()
	s := etcdd.One(t)
	return place{s, t, s.Direct(t)}
}

// write replaces the value of the key, and returns its version.
func (p place) write(s driver.Store, value string) driver.Version {
	p.t.Helper()
	now, err := s.Read(wait.Context(p.t), key)
	rig.Must(p.t, err)
	v, err := s.CompareAndSwap(wait.Context(p.t), key, now.Version, []byte(value))
	rig.Must(p.t, err)
	return v
}

// read reads until the server answers again.
func (p place) read(s driver.Store) (e driver.Entry) {
	p.t.Helper()
	var err error
	wait.Until(p.t, "an answer", func() bool { e, err = s.Read(wait.Context(p.t), key); return err == nil })
	return e
}

// raiseTerm restarts the member, which raises the raft term.
func (p place) raiseTerm() {
	p.t.Helper()
	rig.Must(p.t, p.Stop())
	rig.Must(p.t, p.Start())
	p.read(p.store)
}

// restored restarts the cluster on a snapshot.
func (p place) restored(snapshot, token string, more ...string) {
	p.t.Helper()
	rig.Must(p.t, p.Restore(wait.Context(p.t), snapshot, token, more...))
}

// TestRestoredClusters is the experiment in docs/etcd.md: which members notice that the cluster
// lacks its last writes. A member that goes on notices it by the cluster id, the revision or the
// raft term, and then refuses its old versions by itself. A member that has just started compares
// the cluster id and the raft term with those in the record.
func TestRestoredClusters(t *testing.T) {
	t.Parallel()
	bumped := []string{"--bump-revision", "1000000000", "--mark-compacted"}
	for _, c := range []struct {
		name    string
		raise   bool // the raft term is higher than that of a restored cluster
		restore func(place, string)
		goesOn  bool // a member that goes on notices it
		fresh   bool // so does one that has just started
		floor   bool // the floor is above that of the lost write
	}{
		{"another token", false, func(p place, file string) { p.restored(file, "another") }, true, true, false},
		{"another token, bumped", false, func(p place, file string) { p.restored(file, "another", bumped...) }, true, true, true},
		{"same token", true, func(p place, file string) { p.restored(file, etcdd.Token) }, true, true, false},
		{"same token, bumped", true, func(p place, file string) { p.restored(file, etcdd.Token, bumped...) }, true, true, true},
		{"same token, first raft term", false, func(p place, file string) { p.restored(file, etcdd.Token) }, true, false, false},
		{"same token, first raft term, bumped", false, func(p place, file string) { p.restored(file, etcdd.Token, bumped...) }, false, false, true},
		{"wiped", false, func(p place, _ string) { rig.Must(p.t, p.Wipe()) }, true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			if c.raise {
				p.raiseTerm()
			}
			kept := p.write(p.store, "kept")
			before := p.read(p.store)
			snapshot := etcdd.Snapshot(t, p.Cluster)
			lost := p.write(p.store, "lost")
			top := p.read(p.store).Floor
			c.restore(p, snapshot)

			e := p.read(p.store)
			if string(e.Value) == "lost" || before.Unproven {
				t.Fatalf("the cluster holds %q; before the restore unproven was %v", e.Value, before.Unproven)
			}
			if (e.Era != before.Era) != c.goesOn {
				t.Errorf("a member that goes on: era %d, and %d before", e.Era, before.Era)
			}
			if (e.Floor >= top) != c.floor {
				t.Errorf("the floor is %d, and was %d", e.Floor, top)
			}
			if fresh := p.read(p.Direct(t)); fresh.Unproven != c.fresh {
				t.Errorf("a member that has just started: unproven is %v", fresh.Unproven)
			}
			olds := []driver.Version{lost}
			if c.goesOn {
				olds = append(olds, kept) // its revision and bytes are those of the cell
			}
			for _, old := range olds {
				if _, err := p.store.CompareAndSwap(wait.Context(t), key, old, []byte("late")); !errors.Is(err, driver.ErrConflict) {
					t.Errorf("a write from version %q: %v", old, err)
				}
			}
		})
	}
}

// TestRevisionsThatRecur: after a restore, a revision that a member knows is that of another value.
// A member that has heard nothing since must not replace it. A transaction that compares only the
// revision would.
func TestRevisionsThatRecur(t *testing.T) {
	t.Parallel()
	p, ctx := start(t), wait.Context(t)
	p.write(p.store, "kept")
	snapshot := etcdd.Snapshot(t, p.Cluster)
	lost := p.write(p.store, "lost")
	operator := etcdd.Operator(t, p.Cluster)
	name := p.Prefix + key
	known, err := operator.Get(ctx, name)
	rig.Must(t, err)
	p.restored(snapshot, etcdd.Token)

	wait.Until(t, "a write of another member", func() bool { _, err = operator.Put(ctx, name, "present"); return err == nil })
	for range 3 { // so that no lower revision shows the restore
		_, err = operator.Put(ctx, p.Prefix+"other", "x")
		rig.Must(t, err)
	}
	now, err := operator.Get(ctx, name)
	rig.Must(t, err)
	revision := known.Kvs[0].ModRevision
	if now.Kvs[0].ModRevision != revision || now.Header.ClusterId != known.Header.ClusterId {
		t.Fatalf("the revision does not recur: %d, and %d before; this proves nothing", now.Kvs[0].ModRevision, revision)
	}
	var refused error
	wait.Until(t, "an answer to the late write", func() bool {
		_, refused = p.store.CompareAndSwap(ctx, key, lost, []byte("late"))
		return refused == nil || errors.Is(refused, driver.ErrConflict)
	})
	if now, err = operator.Get(ctx, name); err != nil || refused == nil || string(now.Kvs[0].Value) != "present" {
		t.Errorf("a write from the revision that recurs: %v; the key holds %q, %v", refused, now.Kvs[0].Value, err)
	}
	planted, err := operator.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(name), "=", revision)).Then(clientv3.OpPut(name, "late")).Commit()
	if err != nil || !planted.Succeeded {
		t.Errorf("a transaction that compares only the revision: %v; the test cannot fail", err)
	}
}
