package tenure_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
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
			synctest.Test(t, func(t *testing.T) { chaos(t, seed) })
		})
	}
}

const chaosTime = time.Hour

func chaos(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var shared operated = memory.New()
	if seed%2 == 1 {
		shared = memory.NewPolled()
	}
	r := &resource{}
	ctx, stop := context.WithTimeout(context.Background(), chaosTime)
	defer stop()
	var members sync.WaitGroup
	for i := range 3 {
		store := faults.New(shared, seed*10+uint64(i), chaosPlan(rng))
		members.Go(func() { member(ctx, t, store, fmt.Sprintf("m%d", i), r, rand.New(rand.NewPCG(seed, uint64(i)+2))) })
	}
	go func() {
		for sleep(ctx, time.Duration(rng.Int64N(int64(10*lease)))) {
			shared.Delete(key)
		}
	}()
	members.Wait()
	for _, fault := range r.faults {
		t.Error(fault)
	}
	if r.acts < 5000 || r.terms < 10 {
		t.Errorf("only %d acts in %d terms: this run proves nothing", r.acts, r.terms)
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
func member(ctx context.Context, t *testing.T, store faults.Store, id string, r *resource, rng *rand.Rand) {
	for ctx.Err() == nil {
		life, end := context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(20*lease))))
		e := mustNew(t, store, id, nil)
		go cutAtRandom(life, store, rand.New(rand.NewPCG(rng.Uint64(), 0)))
		go toggleEligibilityAtRandom(life, e, rand.New(rand.NewPCG(rng.Uint64(), 1)))
		if err := e.Run(life, func(ctx context.Context, term *tenure.Term) error { return act(ctx, term, id, r) }); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		end()
	}
	store.SetPlan(faults.Plan{})
	store.Heal()
	store.Wait()
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
