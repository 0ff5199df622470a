package tenure_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
)

// resource records the writes of leaders. It accepts all of them.
type resource struct {
	mu      sync.Mutex
	highest uint64
	acts    int
	terms   int
	faults  []string
}

// act is a write by a leader whose term was just valid.
func (r *resource) act(id string, token uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acts++
	if token > r.highest {
		r.highest = token
		r.terms++
	}
	if token < r.highest {
		r.faults = append(r.faults, fmt.Sprintf("%s acts by term %d after term %d", id, token, r.highest))
	}
}

// TestNoTwoLeadersOverFailingStores runs the whole library, not only the state machine, for a
// virtual hour per seed. Requests and answers of members are lost, late and doubled. Members are
// cut off, restarted and sometimes ineligible, and their record is deleted.
func TestNoTwoLeadersOverFailingStores(t *testing.T) {
	seeds := 10
	if testing.Short() {
		seeds = 4
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			play(t, func(s *scene) { s.chaos(seed) }, []kind{watched, polled}[seed%2])
		})
	}
}

const chaosTime = time.Hour

func (s *scene) chaos(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	r := &resource{}
	ctx, stop := context.WithTimeout(context.Background(), chaosTime)
	defer stop()
	var members sync.WaitGroup
	for i := range 3 {
		link := faults.New(s.store, seed*10+uint64(i), chaosPlan(rng))
		id, rng := fmt.Sprintf("m%d", i), rand.New(rand.NewPCG(seed, uint64(i)+2))
		members.Go(func() { s.over(link).member(ctx, link, id, r, rng) })
	}
	go func() {
		for sleep(ctx, time.Duration(rng.Int64N(int64(10*lease)))) {
			s.store.Delete(key)
		}
	}()
	members.Wait()
	for _, fault := range r.faults {
		s.Error(fault)
	}
	if r.acts < 5000 || r.terms < 10 {
		s.Errorf("only %d acts in %d terms: this run proves nothing", r.acts, r.terms)
	}
}

// chaosPlan gives every fault a small chance.
func chaosPlan(rng *rand.Rand) faults.Plan {
	chances := faults.Chances{}
	for _, f := range []faults.Fault{
		faults.Fail, faults.LoseRequest, faults.LoseAnswer, faults.DelayBefore, faults.DelayAfter, faults.HangBefore,
		faults.HangAfter, faults.LandLate, faults.Replay, faults.Stale, faults.Drop, faults.Delay, faults.Double, faults.Reorder,
	} {
		if rng.IntN(3) == 0 {
			chances[f] = 0.05
		}
	}
	return faults.Plan{Chances: chances, MinDelay: time.Millisecond, MaxDelay: lease, Timeout: lease}
}

// member is one process. It is cut off and restarted at random.
func (s *scene) member(ctx context.Context, link faults.Store, id string, r *resource, rng *rand.Rand) {
	for ctx.Err() == nil {
		life, end := context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(20*lease))))
		e := s.new(id)
		go cutAtRandom(life, link, rand.New(rand.NewPCG(rng.Uint64(), 0)))
		go toggleEligibilityAtRandom(life, e.Election, rand.New(rand.NewPCG(rng.Uint64(), 1)))
		s.is("Run", e.Run(life, func(ctx context.Context, term *tenure.Term) error { return act(ctx, term, id, r) }), nil)
		end()
	}
	link.SetPlan(faults.Plan{})
	link.Heal()
	link.Wait()
}

func act(ctx context.Context, term *tenure.Term, id string, r *resource) error {
	for sleep(ctx, 200*time.Millisecond) {
		if term.Err() == nil {
			r.act(id, term.Token())
		}
	}
	return nil
}

func cutAtRandom(ctx context.Context, store faults.Store, rng *rand.Rand) {
	for sleep(ctx, time.Duration(rng.Int64N(int64(10*lease)))) {
		store.Partition()
		sleep(ctx, time.Duration(rng.Int64N(int64(3*lease))))
		store.Heal()
	}
}

func toggleEligibilityAtRandom(ctx context.Context, e *tenure.Election, rng *rand.Rand) {
	for sleep(ctx, time.Duration(rng.Int64N(int64(10*lease)))) {
		e.SetEligible(false)
		sleep(ctx, time.Duration(rng.Int64N(int64(2*lease))))
		e.SetEligible(true)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
