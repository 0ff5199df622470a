//go:build integration

package stores

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// regime is what happens while clients contend for a cell.
type regime struct {
	rig.Fault
	chances faults.Chances
	// cuts: the ways of clients are cut.
	cuts bool
}

// regimes are those of all stores, and the faults of a site.
func regimes(s rig.Site, network bool) []regime {
	all := []regime{
		{Fault: rig.Fault{Name: "contended", Why: "many clients alone", Quick: true}},
		{
			Fault: rig.Fault{Name: "lost", Why: "writes whose answers are lost or late were applied, or will be", Unknowns: 10, Quick: true},
			chances: faults.Chances{
				faults.LoseAnswer: 0.1, faults.LoseRequest: 0.05, faults.HangAfter: 0.05, faults.LandLate: 0.1,
				faults.DelayBefore: 0.05, faults.DelayAfter: 0.05,
			},
		},
		{
			Fault: rig.Fault{
				Name: "replayed", Why: "the second delivery of a write is refused because of the first", Rules: history.Rules{Replayed: true},
			},
			chances: faults.Chances{faults.Replay: 0.2, faults.LoseAnswer: 0.05},
		},
	}
	if network {
		all = append(all, regime{cuts: true, Fault: rig.Fault{
			Name: "cut", Why: "connections lose bytes, or hold them back and deliver them late", Unknowns: 10,
		}})
	}
	for _, f := range s.Faults() {
		all = append(all, regime{Fault: f})
	}
	return all
}

// TestRegister: elections rely on one property of a cell. It is one register for all clients, also
// while servers and networks fail.
func TestRegister(t *testing.T) {
	each(t, func(t *testing.T, r rig.Rig) {
		faulty(t, r)
		s := r.Start(t, false)
		_, way := s.Open(t, 0)
		for _, g := range regimes(s, way != nil) {
			seed := rand.Uint64()
			ok := t.Run(fmt.Sprintf("%s,seed=%d", g.Name, seed), func(t *testing.T) {
				if testing.Short() && !g.Quick {
					t.Skip("the soak does it")
				}
				g.play(t, r, s, seed)
			})
			if !ok {
				return // a server may be down
			}
		}
	})
}

func (g regime) play(t *testing.T, r rig.Rig, s rig.Site, seed uint64) {
	clients, attention := cmp.Or(r.Clients, rig.Writers), cmp.Or(r.Attention, rig.Attention)
	h := history.New("register-" + strings.ReplaceAll(g.Name, " ", "-"))
	last, _ := s.Open(t, clients)
	ctx, cancel := history.Lasting(cmp.Or(g.Least, 2500*time.Millisecond), func() bool { return g.worth(h) })
	defer cancel()
	var playing sync.WaitGroup
	var stores []faults.Store
	var ways []rig.Way
	for i := range clients {
		inner, way := s.Open(t, i)
		store := faults.New(inner, seed+uint64(i), faults.Plan{Chances: g.chances, MaxDelay: attention})
		stores, ways = append(stores, store), append(ways, way)
		c := history.Client{ID: i, Attention: attention, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		playing.Go(func() { h.Play(ctx, store, c) })
	}
	for rng := rand.New(rand.NewPCG(seed, uint64(clients))); ctx.Err() == nil; {
		switch {
		case g.cuts:
			cutOne(ctx, rng, ways, 300*time.Millisecond)
		case g.Fall != nil:
			g.Strike(ctx, t, rng)
		default:
			<-ctx.Done()
		}
	}
	playing.Wait()
	for _, store := range stores {
		store.Wait()
	}
	wait.Until(t, "the last read", func() bool { // so that every applied write has been seen
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, ok := h.Read(ctx, last, clients)
		return ok
	})
	reads, swaps, refusals, unknowns := h.Tally()
	t.Logf("%d reads, %d swaps, %d refusals, %d unknown", reads, swaps, refusals, unknowns)
	if h.Check(t, with(r.Rules, g.Rules)); t.Failed() {
		t.Log(g.Why)
	}
	if !g.worth(h) {
		t.Errorf("too little has happened to prove that %s", g.Why)
	}
}

// with adds rules.
func with(r, more history.Rules) history.Rules {
	r.Replayed, r.Hasty = r.Replayed || more.Replayed, r.Hasty || more.Hasty
	r.Stale, r.Early = r.Stale || more.Stale, r.Early || more.Early
	if more.Era != nil {
		r.Era = more.Era
	}
	return r
}

// worth reports whether enough has happened.
func (g regime) worth(h *history.History) bool {
	_, swaps, refusals, unknowns := h.Tally()
	return swaps >= 20 && refusals >= 10 && unknowns >= g.Unknowns
}

// cutOne cuts the way of one client for a while, at most for this long.
func cutOne(ctx context.Context, rng *rand.Rand, ways []rig.Way, most time.Duration) {
	w := ways[rng.IntN(len(ways))]
	mend := w.Heal
	switch rng.IntN(3) {
	case 0:
		w.Blackhole()
	case 1:
		w.Mute()
	case 2:
		w.Hold()
		mend = w.Release
	}
	rig.Sleep(ctx, time.Duration(rng.Int64N(int64(most))))
	mend()
	rig.Sleep(ctx, 20*time.Millisecond)
}
