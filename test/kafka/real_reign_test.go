//go:build integration

package kafka

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/test/internal/acts"
	"github.com/tenure-go/tenure/test/internal/asking"
)

// runsVariable says how often each trouble is made, once if it is not set.
const runsVariable = "TENURE_KAFKA_RUNS"

func realRuns(t testing.TB) int {
	t.Helper()
	if os.Getenv(runsVariable) == "" {
		return 1
	}
	n, err := strconv.Atoi(os.Getenv(runsVariable))
	if err != nil {
		t.Fatalf("%s: %v", runsVariable, err)
	}
	return n
}

// realRounds is how many of n rounds a test makes: all, if troubles are made three times.
func realRounds(t testing.TB, n int) int {
	t.Helper()
	return min(n, (n+2)/3*realRuns(t))
}

// reign is an election among three candidates, each with a store of its own, in which whoever is elected leads on.
type reign struct {
	book  acts.Book
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
	b.eventually("the first leader", func() bool { return r.terms.Load() > 0 })
	return r
}

// judge ends the election and returns whether the first leader led all the time.
func (r *reign) judge(b *brokers) (kept bool) {
	b.tb.Helper()
	b.eventually("somebody leads", func() bool { return r.last.Load().Err() == nil })
	kept = r.terms.Load() == 1
	r.end()
	v := r.book.Judge()
	if !v.Safe() || v.Answers == 0 {
		b.tb.Errorf("%d answers of yes after the next was elected, up to %v after; %d terms not above the last", v.Stale, v.Overlap, v.Regressed)
	}
	return kept
}

// TestRealReigns: what a leader outlives. At 10 s nothing is promised but that no two lead at once, and that somebody does.
func TestRealReigns(t *testing.T) {
	startReal(t) // or skip
	kill := func(b *brokers, leader int) {
		b.must(b.Kill(leader))
		pause(b.context(), 20*time.Second)
	}
	freeze := func(b *brokers, leader int) {
		b.must(b.Pause(leader))
		pause(b.context(), 20*time.Second)
		b.must(b.Resume(leader))
		pause(b.context(), 5*time.Second)
	}
	roll := func(b *brokers, _ int) { b.roll() }
	for _, c := range []struct {
		name    string
		lease   time.Duration
		trouble func(b *brokers, leader int)
		kept    bool
	}{
		{"rolling restart", 5 * time.Second, roll, true},
		{"partition leader killed", 20 * time.Second, kill, true},
		{"partition leader frozen", 20 * time.Second, freeze, true},
		{"partition leader killed", 10 * time.Second, kill, false},
		{"partition leader frozen", 10 * time.Second, freeze, false},
	} {
		t.Run(fmt.Sprintf("%s, lease %v", c.name, c.lease), func(t *testing.T) {
			runs, kept := realRuns(t), atomic.Int64{}
			if !c.kept && runs == 1 {
				t.Skipf("one run says little of how often: %s=10", runsVariable)
			}
			for i := 0; i < runs || runs == 1 && i == 1 && c.kept && kept.Load() == 0; i++ { // one alone may be the machine's fault
				t.Run(fmt.Sprint(i+1), func(t *testing.T) {
					b := startReal(t)
					r := b.reign(c.lease)
					b.must(b.Complete(b.context())) // else a broker that is killed may have the one copy that counts
					c.trouble(b, b.Leader(t, b.topic, 0))
					if r.judge(b) {
						kept.Add(1)
					}
				})
			}
			t.Logf("the first leader led on in %d of %d", kept.Load(), runs)
			if c.kept && int(kept.Load()) < runs && !t.Failed() {
				t.Error("it must always")
			}
		})
	}
}
