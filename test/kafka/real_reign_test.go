//go:build integration

package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
)

// reign is an election among three candidates, each with its own store, in which each elected
// leader leads on.
type reign struct {
	book  witness.Book
	terms atomic.Int64
	last  atomic.Pointer[tenure.Term]
	end   func()
}

func (b *brokers) reign(lease time.Duration) *reign {
	b.tb.Helper()
	r := &reign{}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range 3 {
		id := fmt.Sprint("c", i)
		e, err := tenure.New(b.open(b.direct(), usual), "billing", tenure.Config{ID: id, Lease: lease, OnEvent: func(e tenure.Event) {
			if e.Kind == tenure.EventLost || e.Kind == tenure.EventAlarm {
				b.tb.Logf("%s, term %d: %v", e.ID, e.Term, e.Cause)
			}
		}})
		if err != nil {
			b.tb.Fatal(err)
		}
		asker := asking.Start(func(election string, token uint64, stamps []int64) { r.book.Add(election, id, token, stamps...) })
		all.Go(func() {
			defer asker.Stop()
			_ = e.Run(ctx, func(soft context.Context, term *tenure.Term) error {
				asker.Enter("billing", term, asking.ByTerm)
				r.last.Store(term)
				r.terms.Add(1)
				<-soft.Done()
				return nil
			})
		})
	}
	r.end = func() { cancel(); all.Wait() }
	wait.Until(b.tb, "the first leader", func() bool { return r.terms.Load() > 0 })
	return r
}

// judge ends the election and returns whether the first leader led all the time.
func (r *reign) judge(b *brokers) (kept bool) {
	b.tb.Helper()
	wait.Until(b.tb, "a candidate leads", func() bool { return r.last.Load().Err() == nil })
	kept = r.terms.Load() == 1
	r.end()
	v := r.book.Judge()
	if !v.Safe() || v.Acts == 0 {
		b.tb.Error(v)
	}
	return kept
}

// TestRealReigns shows which faults a leader outlives. No two lead at once, and in the end there is
// a leader. With a lease of a minute the first leader must lead on. With shorter leases the test
// reports how often it does.
func TestRealReigns(t *testing.T) {
	soak(t)
	kill := func(b *brokers, leader int) {
		b.must(b.Kill(leader))
		b.anotherLeader(leader)
		b.must(b.Start(leader))
	}
	freeze := func(b *brokers, leader int) {
		b.must(b.Pause(leader))
		b.anotherLeader(leader)
		b.must(b.Resume(leader))
	}
	roll := func(b *brokers, _ int) { b.Roll(b.tb) }
	for _, c := range []struct {
		name    string
		lease   time.Duration
		trouble func(b *brokers, leader int)
	}{
		{"rolling restart", 5 * time.Second, roll},
		{"rolling restart", kept, roll},
		{"partition leader killed", 10 * time.Second, kill},
		{"partition leader killed", 20 * time.Second, kill},
		{"partition leader killed", kept, kill},
		{"partition leader frozen", 10 * time.Second, freeze},
		{"partition leader frozen", 20 * time.Second, freeze},
		{"partition leader frozen", kept, freeze},
	} {
		t.Run(fmt.Sprintf("%s, lease %v", c.name, c.lease), func(t *testing.T) {
			same := 0
			for i := range *realRuns {
				t.Run(fmt.Sprint(i+1), func(t *testing.T) {
					b := startReal(t)
					r := b.reign(c.lease)
					// Otherwise a killed broker may have the one copy that counts.
					b.must(b.Complete(b.context()))
					c.trouble(b, b.Leader(t, b.topic, 0))
					r.renewed(b)
					if r.judge(b) {
						same++
					}
				})
			}
			t.Logf("the first leader led on in %d of %d", same, *realRuns)
			if c.lease == kept && same < *realRuns && !t.Failed() {
				t.Error("it must always")
			}
		})
	}
}

// kept is a lease that no fault of one broker takes from its leader, not even on a busy machine.
const kept = time.Minute

// anotherLeader waits until another broker leads the partition.
func (b *brokers) anotherLeader(than int) {
	b.tb.Helper()
	wait.Until(b.tb, "another leader", func() bool { return b.Leader(b.tb, b.topic, 0) != than })
}

// renewed waits until the leader has written to the log again.
func (r *reign) renewed(b *brokers) {
	b.tb.Helper()
	s := b.open(b.direct())
	var first driver.Version
	wait.Until(b.tb, "a renewal", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), steady)
		defer cancel()
		e, err := s.Read(ctx, "billing")
		if err == nil && first == "" {
			first = e.Version
		}
		return err == nil && e.Version != first
	})
}
