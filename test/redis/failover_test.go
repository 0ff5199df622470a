//go:build integration

package redis

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/redisd"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

var rounds = flag.Int("failovers", 1, "play each kind of failover this often")

// pair is a primary, and a replica that follows it over a relay.
type pair struct {
	primary, replica *redisd.Server
	link             *relay.Relay
}

func newPair(t testing.TB, settings ...string) *pair {
	t.Helper()
	return newPairOf(t, redisd.Redis, settings...)
}

func newPairOf(t testing.TB, program string, settings ...string) *pair {
	t.Helper()
	p := &pair{primary: redisd.Start(t, program, settings...)}
	var err error
	p.link, err = relay.New("tcp://" + p.primary.Address())
	rig.Must(t, err)
	t.Cleanup(p.link.Close)
	_, address, _ := strings.Cut(p.link.URL(), "//")
	p.replica = redisd.Start(t, program, append(settings, "replicaof "+strings.ReplaceAll(address, ":", " "))...)
	p.replica.Until(t, "replication", "master_link_status:up")
	return p
}

// caughtUp waits until the replica has the state of a key.
func (p *pair) caughtUp(t testing.TB, key string) {
	t.Helper()
	wait.Succeeds(t, "the replica has the state", func(ctx context.Context) error {
		there, err := p.primary.Do(ctx, "HGET", "tenure:"+key, "version")
		here, failed := p.replica.Do(ctx, "HGET", "tenure:"+key, "version")
		if err == nil && failed == nil && here != there {
			failed = fmt.Errorf("version %s, and %s on the replica", there, here)
		}
		return errors.Join(err, failed)
	})
}

func (p *pair) promote(t testing.TB) {
	t.Helper()
	_, err := p.replica.Do(wait.Context(t), "REPLICAOF", "NO", "ONE")
	rig.Must(t, err)
}

func open(t testing.TB, s *redisd.Server, opts ...redisstore.Option) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(wait.Context(t), rueidis.ClientOption{InitAddress: []string{s.Address()}}, opts...)
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, store.Close()) })
	return store
}

// without is a store that vouches for less.
type without struct {
	driver.Store
	era, floor bool
}

// of returns a store that vouches for less, and can watch only if it vouches for all.
func (w without) of(s *redisstore.Store) driver.Store {
	if !w.era && !w.floor {
		return s
	}
	w.Store = s
	return w
}

func (w without) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := w.Store.Read(ctx, key)
	if w.era {
		e.Era, e.Unproven, e.Version = 0, false, stamp(e.Version)
	}
	if w.floor {
		e.Floor, e.Ceiling = 0, 0
	}
	return e, err
}

// CompareAndSwap compares the stamps alone, if the era is left out.
func (w without) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if w.era && prev != "" {
		now, err := w.Store.Read(ctx, key)
		if err != nil {
			return "", err
		}
		if stamp(now.Version) != prev {
			return "", driver.ErrConflict
		}
		v, err := w.Store.CompareAndSwap(ctx, key, now.Version, value)
		return stamp(v), err
	}
	return w.Store.CompareAndSwap(ctx, key, prev, value)
}

func stamp(v driver.Version) driver.Version {
	s, _, _ := strings.Cut(string(v), " ")
	return driver.Version(s)
}

const lease = 2 * time.Second

// released leaves a release, so that the next candidate need not wait.
func released(t *testing.T, s driver.Store) {
	t.Helper()
	e, err := tenure.New(s, "billing", tenure.Config{ID: "zero", Lease: time.Second})
	rig.Must(t, err)
	rig.Must(t, e.Run(t.Context(), func(context.Context, *tenure.Term) error { return nil }))
}

// leads returns the first term of a new candidate.
func leads(t *testing.T, ctx context.Context, s driver.Store, cfg tenure.Config) <-chan *tenure.Term {
	t.Helper()
	e, err := tenure.New(s, "billing", cfg)
	rig.Must(t, err)
	first := make(chan *tenure.Term, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			select {
			case first <- term:
			default:
			}
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() { <-done })
	return first
}

// failover is a failover after which the former primary is gone, or lives on.
type failover struct {
	name string
	left without // of the stores of the candidates
	wait int
	// lost: the promoted replica lacks the claim of the first leader, and has the release before.
	lost bool
	// parted: the former primary and its leader live on.
	parted bool
	// cluster: the servers are a Cluster, which promotes the replica itself.
	cluster bool
	// The first leader may still act when the second one begins, and the second token is not above
	// the first.
	overlaps, repeats bool
}

var failovers = []failover{
	{name: "lost claim", lost: true},
	{name: "lost claim, without the era", lost: true, left: without{era: true}, overlaps: true},
	{name: "lost claim, without the floor", lost: true, left: without{floor: true}, repeats: true},
	{name: "lost claim, without both", lost: true, left: without{era: true, floor: true}, overlaps: true, repeats: true},
	{name: "lost claim in a Cluster", lost: true, cluster: true},
	{name: "lost claim in a Cluster, without the era", lost: true, cluster: true, left: without{era: true}, overlaps: true},
	{name: "lost claim in a Cluster, without the floor", lost: true, cluster: true, left: without{floor: true}, repeats: true},
	{name: "two primaries", parted: true, overlaps: true},
	{name: "two primaries, with WAIT", parted: true, wait: 1},
}

// TestFailovers: with the era, a failover that loses a claim makes no second leader while the lost
// claim's lease runs. Without it, there are two. The floor keeps tokens growing. If the former
// primary lives on, only WAIT helps.
func TestFailovers(t *testing.T) {
	for _, f := range failovers {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			overlaps, repeats, n := 0, 0, 0
			// A busy machine may hide what a control shows.
			hidden := func() bool { return f.overlaps && overlaps == 0 || f.repeats && repeats == 0 }
			for ; n < *rounds || hidden() && n < *rounds+4; n++ {
				t.Run("round", func(t *testing.T) {
					play := f.play
					if f.cluster {
						play = f.playCluster
					}
					overlap, repeat := play(t)
					if overlap {
						overlaps++
					}
					if repeat {
						repeats++
					}
					if overlap && !f.overlaps || repeat && !f.repeats {
						t.Errorf("overlap %t, repeated term %t", overlap, repeat)
					}
				})
			}
			if hidden() {
				t.Error("the control shows nothing")
			}
			t.Logf("%d failovers: %d overlaps, %d repeated terms", n, overlaps, repeats)
		})
	}
}

func (f failover) play(t *testing.T) (overlap, repeat bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPair(t)
	on := func(s *redisd.Server) driver.Store { return f.left.of(open(t, s, redisstore.WithWait(f.wait))) }
	released(t, on(p.primary))
	p.caughtUp(t, "billing")
	if f.lost {
		p.link.Blackhole()
	}
	first := <-leads(t, ctx, on(p.primary), tenure.Config{ID: "first", Lease: lease})
	if !f.lost {
		p.caughtUp(t, "billing")
		p.link.Blackhole()
	}
	if !f.parted {
		rig.Must(t, p.primary.Kill())
	}
	p.promote(t)
	if f.wait > 0 { // nobody leads without a replica
		redisd.Start(t, redisd.Redis, "replicaof "+strings.ReplaceAll(p.replica.Address(), ":", " "))
	}
	second := <-leads(t, ctx, on(p.replica), tenure.Config{ID: "second", Lease: lease})
	return first.Err() == nil, second.Token() <= first.Token()
}

// TestPromotedReplicaIsAnotherEra: the promoted replica lacks a write. Its state is unproven, and
// versions from before are refused.
func TestPromotedReplicaIsAnotherEra(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	p := newPair(t)
	s := open(t, p.primary)
	v, err := s.CompareAndSwap(ctx, "k", "", []byte("first"))
	rig.Must(t, err)
	before, err := s.Read(ctx, "k")
	rig.Must(t, err)
	p.caughtUp(t, "k")
	p.link.Blackhole()
	lost, err := s.CompareAndSwap(ctx, "k", v, []byte("lost"))
	rig.Must(t, err)
	last, err := s.Read(ctx, "k")
	rig.Must(t, err)
	rig.Must(t, p.primary.Kill())
	p.promote(t)
	s = open(t, p.replica)
	after, err := s.Read(ctx, "k")
	if err != nil || string(after.Value) != "first" || !after.Unproven || before.Unproven || after.Era == before.Era || after.Floor <= last.Floor {
		t.Errorf("before %+v, then %+v, %v: want the first value, unproven, in another era, with a higher floor", before, after, err)
	}
	for _, prev := range []driver.Version{v, lost, ""} {
		if _, err := s.CompareAndSwap(ctx, "k", prev, []byte("late")); !errors.Is(err, driver.ErrConflict) {
			t.Errorf("a write from version %q of the former era: got %v, want a conflict", prev, err)
		}
	}
	if v, err = s.CompareAndSwap(ctx, "k", after.Version, []byte("next")); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Read(ctx, "k"); err != nil || e.Version != v || e.Unproven {
		t.Errorf("got %+v, %v: want version %q, proven", e, err, v)
	}
}

// TestReadsWaitForReplicas: a state that no replica has is not read, over any connection. Otherwise
// a leader without an answer to its claim would find it applied, and lead.
func TestReadsWaitForReplicas(t *testing.T) {
	for _, program := range []string{redisd.Redis, redisd.Valkey} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			redisd.Need(t, program)
			ctx := wait.Context(t)
			p := newPairOf(t, program)
			s := open(t, p.primary, redisstore.WithWait(1))
			v, err := s.CompareAndSwap(ctx, "k", "", []byte("there"))
			rig.Must(t, err)
			p.link.Blackhole()
			brief := func(s *redisstore.Store, write bool) error {
				ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
				if !write {
					_, err := s.Read(ctx, "k")
					return err
				}
				_, err := s.CompareAndSwap(ctx, "k", v, []byte("alone"))
				return err
			}
			if err := brief(s, true); err == nil || errors.Is(err, driver.ErrConflict) {
				t.Errorf("a write without the replica: %v", err)
			}
			for name, s := range map[string]*redisstore.Store{"the same client": s, "another client": open(t, p.primary, redisstore.WithWait(1))} {
				if err := brief(s, false); err == nil {
					t.Errorf("a read by %s without the replica: %v", name, err)
				}
			}
			if e, err := open(t, p.primary).Read(ctx, "k"); err != nil || string(e.Value) != "alone" {
				t.Errorf("a read that does not wait: %+v, %v", e, err)
			}
			p.link.Heal()
			wait.Succeeds(t, "a read with the replica", func(ctx context.Context) error { _, err := s.Read(ctx, "k"); return err })
		})
	}
}
