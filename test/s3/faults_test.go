package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

const faultyLease = 2 * time.Second

// faultPlans returns a plan with all faults, a plan of a server that refuses each quoted ETag, and
// a plan for each single fault. Nearly every third request fails.
func faultPlans() []s3fake.Plan {
	all := []s3fake.Fault{
		s3fake.Contended, s3fake.TooMany, s3fake.Broken, s3fake.BrokenLate, s3fake.LoseRequest, s3fake.LoseAnswer,
		s3fake.DelayBefore, s3fake.DelayAfter, s3fake.Refuse, s3fake.RefuseQuoted, s3fake.Missing,
	}
	plans := []s3fake.Plan{{Chances: map[s3fake.Fault]float64{}}, {Chances: map[s3fake.Fault]float64{s3fake.RefuseQuoted: 1}}}
	for _, f := range all {
		plans[0].Chances[f] = 0.3 / float64(len(all))
		plans = append(plans, s3fake.Plan{Chances: map[s3fake.Fault]float64{f: 0.3}})
	}
	for i := range plans {
		plans[i].MaxDelay = faultyLease / 4
	}
	return plans
}

// nameOf returns a short name, which is the same in each run except for the seed.
func nameOf(p s3fake.Plan, seed uint64) string {
	name := "all"
	for f := range p.Chances {
		if len(p.Chances) == 1 {
			name = f.String()
		}
	}
	return fmt.Sprintf("%s,seed=%d", name, seed)
}

// TestFaults holds an election on each of many servers, which fail in 30 % of requests. The seed
// decides which requests fail.
func TestFaults(t *testing.T) {
	var struck atomic.Int64
	plans := faultPlans()
	const terms = 4
	t.Run("plans", func(t *testing.T) { // it ends when all tests in it have ended
		for _, p := range plans {
			seed := rand.Uint64()
			t.Run(nameOf(p, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					server := startFake(t, new(pipenet.Network), seed, p)
					f := &faulty{TB: t, most: terms, server: server}
					f.play()
					struck.Add(f.struck(p))
				})
			})
		}
	})
	// At least one fault per term, and some more.
	if n := struck.Load(); n < int64(5*terms*len(plans)/4) {
		t.Errorf("%d faults: this run proves little", n)
	}
}

// faulty is an election on a server that fails.
type faulty struct {
	testing.TB
	server *s3fake.Server
	most   int // terms
	end    context.CancelFunc

	mu    sync.Mutex
	terms []*tenure.Term
}

// play runs three candidates. Each leader leaves gracefully after a while, until there were this
// many terms and one more.
func (f *faulty) play() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f.end = cancel
	var all sync.WaitGroup
	for i := range 3 {
		store, err := s3object.New(f.server.Client(), fakeBucket)
		if err != nil {
			f.Fatal(err)
		}
		e, err := tenure.New(store, "billing", tenure.Config{
			ID: fmt.Sprintf("c%d", i), Lease: faultyLease, OnEvent: f.onEvent,
		})
		if err != nil {
			f.Fatal(err)
		}
		all.Go(func() {
			for ctx.Err() == nil {
				err := e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
					f.begins(e.ID(), term)
					select {
					case <-time.After(faultyLease * 5 / 4): // by then it has renewed
					case <-ctx.Done():
					}
					return nil
				})
				if err != nil && ctx.Err() == nil {
					f.Errorf("Run of %s: %v", e.ID(), err)
				}
			}
		})
	}
	all.Wait()
}

func (f *faulty) struck(p s3fake.Plan) (n int64) {
	for fault := range p.Chances {
		n += int64(f.server.Struck(fault))
	}
	f.Logf("%d faults in %d reads and %d writes", n, f.server.Requests("GET"), f.server.Requests("PUT"))
	return n
}

// onEvent: a term may end because its time is over, but never because a fault is mistaken for
// another candidate's write.
func (f *faulty) onEvent(e tenure.Event) {
	switch {
	case e.Kind == tenure.EventLost && !errors.Is(e.Cause, tenure.ErrExpired):
		f.Errorf("%s lost term %d before its deadline: %v", e.ID, e.Term, e.Cause)
	case e.Kind == tenure.EventAlarm:
		f.Errorf("alarm at %s: %v", e.ID, e.Cause)
	}
}

// begins requires that each term has a higher token than all before, and that all of these are
// over, which they remain.
func (f *faulty) begins(id string, t *tenure.Term) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, former := range f.terms {
		if former.Err() == nil || former.Token() >= t.Token() {
			f.Errorf("%s is elected with token %d, and the token %d ended with %v", id, t.Token(), former.Token(), former.Err())
		}
	}
	f.terms = append(f.terms, t)
	if len(f.terms) > f.most {
		f.end()
	}
}
