//go:build integration

package stores

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/reign"
	"github.com/tenure-go/tenure/test/internal/rig"
)

const (
	// brief is a lease that many faults outlast.
	brief = 2 * time.Second
	// ample is a lease that no fault of one server takes from its leader, not even on a busy
	// machine.
	ample = time.Minute
)

// TestReigns: candidates elect leaders while servers and networks fail. No two lead at once, and in
// the end one leads.
func TestReigns(t *testing.T) {
	apart(t, func(t *testing.T, r rig.Rig) {
		faulty(t, r)
		s := r.Start(t, false)
		play := func(name string, quick bool, test func(*testing.T, rig.Site, *rand.Rand)) {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("%s,seed=%d", name, seed), func(t *testing.T) {
				if testing.Short() && !quick {
					t.Skip("the soak does it")
				}
				test(t, s, rand.New(rand.NewPCG(seed, 0)))
			})
		}
		first := !r.Shared // the short pass has one, on servers that start fast
		for _, f := range s.Faults() {
			play(f.Name, f.Quick && first, func(t *testing.T, s rig.Site, rng *rand.Rand) { outlive(t, s, f, rng) })
			first = first && !f.Quick
		}
		if _, way := s.Open(t, 0); way != nil {
			play("leader cut off", true, leaderCutOff)
			play("everything at once", false, everything)
		}
	})
}

// election returns one of this test with three candidates, each over a way of its own.
func election(t *testing.T, way asking.Way, stores []driver.Store, ways []rig.Way, cfg tenure.Config) *reign.Reign {
	t.Helper()
	name := strings.ReplaceAll(t.Name(), "/", "-")
	name, _, _ = strings.Cut(name, ",seed")
	name = strings.ToLower(fmt.Sprintf("%s-%s-%v", name, way, cfg.Lease))
	key := strings.NewReplacer(" ", "-", "_", "-").Replace(name) // which each store takes
	r := reign.New(t, key, way)
	r.Over(stores[0])
	for i, s := range stores {
		cfg.ID = fmt.Sprint("c", i)
		r.Join(s, ways[i], cfg)
	}
	return r
}

// three returns the stores of three candidates.
func three(t *testing.T, s rig.Site) (stores []driver.Store, ways []rig.Way) {
	t.Helper()
	for i := range 3 {
		store, way := s.Open(t, i)
		stores, ways = append(stores, store), append(ways, way)
	}
	return stores, ways
}

// outlive: with an ample lease the first leader leads on. Terms with a brief lease may end.
func outlive(t *testing.T, s rig.Site, f rig.Fault, rng *rand.Rand) {
	stores, ways := three(t, s)
	short := election(t, asking.ByTerm, stores, ways, tenure.Config{Lease: brief})
	long := election(t, asking.ByTerm, stores, ways, tenure.Config{Lease: ample, Tuning: tenure.Tuning{Renew: time.Second}})
	first := long.Leader(0)
	short.Leader(0)
	rise := f.Fall(t, rng)
	time.Sleep(max(f.Lasts, brief*3/2)) // so that another might lead
	rise()
	short.Leads()
	operator, _ := s.Open(t, 0)
	var before driver.Version
	wait.Succeeds(t, "a renewal", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		e, err := operator.Read(ctx, long.Key)
		if err == nil && before == "" {
			before = e.Version
		}
		if err == nil && e.Version == before {
			err = fmt.Errorf("the version is %s", e.Version)
		}
		return err
	})
	t.Logf("%d terms with a lease of %v", len(short.Terms()), brief)
	if n := len(long.Terms()); n > 1 || first.Err() != nil {
		t.Errorf("%d terms with a lease of %v: %s", n, ample, f.Why)
	}
}

// leaderCutOff: a leader that hears nothing more is deposed in time. A leader that goes by the last
// event that it received is found out. Without the second half, the first would prove nothing.
func leaderCutOff(t *testing.T, s rig.Site, _ *rand.Rand) {
	stores, ways := three(t, s)
	right := election(t, asking.ByTerm, stores, ways, tenure.Config{Lease: brief})
	wrong := election(t, asking.ByMemory, stores, ways, tenure.Config{Lease: brief})
	for _, r := range []*reign.Reign{right, wrong} {
		old := r.Leader(0)
		old.By.Way.Blackhole()
		r.Leader(old.Token())
		if r == wrong {
			wait.Until(t, "a leader that goes by memory is found out", func() bool { return r.Book.Judge().Stale > 0 })
		}
		old.By.Way.Heal()
	}
}

// everything: requests and answers are lost, late and doubled, ways are cut, and servers fail. The
// outcome also depends on the machine.
func everything(t *testing.T, s rig.Site, rng *rand.Rand) {
	stores, ways := three(t, s)
	for i, inner := range stores {
		failing := faults.New(inner, rng.Uint64(), faults.Plan{Chances: faults.Chances{
			faults.LoseAnswer: 0.05, faults.LoseRequest: 0.05, faults.LandLate: 0.05, faults.HangAfter: 0.03,
			faults.DelayAfter: 0.05, faults.Replay: 0.05, faults.Drop: 0.1, faults.Delay: 0.1, faults.Double: 0.1,
		}, MaxDelay: 300 * time.Millisecond})
		t.Cleanup(failing.Wait)
		stores[i] = failing
	}
	r := election(t, asking.ByTerm, stores, ways, tenure.Config{Lease: brief})
	r.Leader(0)
	all := s.Faults()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var cutting sync.WaitGroup
	for i := range ways {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		cutting.Go(func() {
			for ctx.Err() == nil {
				rig.Sleep(ctx, time.Duration(own.Int64N(int64(brief))))
				cutOne(ctx, own, ways[i:i+1], brief)
			}
		})
	}
	for ctx.Err() == nil {
		rig.Sleep(ctx, time.Duration(rng.Int64N(int64(brief))))
		all[rng.IntN(len(all))].Strike(ctx, t, rng)
	}
	cutting.Wait()
	last := r.Leader(0)
	last.By.Leave() // the others go on
	r.Leader(last.Token())
}
