package slots_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/slots"
)

var seeds = flag.Uint64("seeds", 2, "number of runs of TestChaos, each with a seed of its own")

// TestChaos starts, ends and cuts off members with different numbers of slots at random, over a
// faulty store. The promise of the package holds at each moment. When all goes well again, all
// slots have leaders.
//
//	go test ./slots -run TestChaos -seeds 200
func TestChaos(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = 1
	}
	for seed := range n {
		scenes{fmt.Sprint("seed ", seed): func(p *pool) { chaos(p, seed) }}.play(t)
	}
}

func chaos(p *pool, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	p.work = func(ctx context.Context, t *tenure.Term) error {
		<-ctx.Done()
		// as long as the promise allows, or longer
		time.Sleep(time.Duration(t.Token()*7919%10) * finishWithin / 8)
		return nil
	}
	sizes := []int{2, 4, 6}
	next := 0
	start := func(size int) {
		next++
		id := fmt.Sprint("m", next)
		p.joinWith(func(c *slots.Config) { c.PerMember = 1 + r.IntN(2) }, size, id)
		p.member(id).line.SetPlan(plan(r))
	}
	for range 8 {
		start(sizes[r.IntN(3)])
	}
	for range 60 {
		all := slices.Sorted(maps.Keys(p.members))
		id := all[r.IntN(len(all))]
		switch r.IntN(6) {
		case 0, 1:
			p.member(id).line.Heal()
			p.leave(id)
			start(sizes[r.IntN(3)])
		case 2:
			p.member(id).line.Partition()
		case 3, 4:
			p.member(id).line.Heal()
		case 5:
			p.member(id).line.SetPlan(plan(r))
		}
		time.Sleep(time.Duration(r.Int64N(int64(3 * lease))))
	}
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		p.member(id).line.Heal()
		p.leave(id)
		start(3)
		p.member(fmt.Sprint("m", next)).line.SetPlan(faults.Plan{})
	}
	p.rest()
	p.led(3, 2)
}

// plan returns faults that the promise covers: no read is stale, and no push is later than late.
func plan(r *rand.Rand) faults.Plan {
	return faults.Plan{
		Chances: faults.Chances{
			faults.Fail: 0.05 * r.Float64(), faults.LoseRequest: 0.05 * r.Float64(), faults.LoseAnswer: 0.05 * r.Float64(),
			faults.DelayBefore: 0.1 * r.Float64(), faults.DelayAfter: 0.1 * r.Float64(), faults.LandLate: 0.03 * r.Float64(),
			faults.Replay: 0.03 * r.Float64(), faults.Drop: 0.1 * r.Float64(), faults.Delay: 0.1 * r.Float64(), faults.Double: 0.1 * r.Float64(),
		},
		MaxDelay: late,
	}
}
