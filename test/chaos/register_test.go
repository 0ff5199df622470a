//go:build integration

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// regime is the state of the network and the server while clients work on a cell.
type regime struct {
	name    string
	why     string
	chances faults.Chances
	rules   history.Rules
	// trouble is called again and again.
	trouble func(t testing.TB, rng *rand.Rand, a arena)
	// replicas is the number of servers, 1 unless set. lasts is the shortest time for which clients
	// run, 2.5 s unless set.
	replicas int
	lasts    time.Duration
	// needs is the number of operations with an unknown outcome that make the run useful.
	needs int
	// quick regimes also run in the short pass.
	quick bool
}

func regimes() []regime {
	return []regime{
		{name: "calm", why: "many clients alone"},
		{name: "lost", why: "writes whose answers are lost or late were applied, or will be",
			chances: faults.Chances{
				faults.LoseAnswer: 0.1, faults.LoseRequest: 0.05, faults.HangAfter: 0.05, faults.LandLate: 0.1,
				faults.DelayBefore: 0.05, faults.DelayAfter: 0.05,
			}, needs: 10, quick: true},
		{name: "replayed", why: "the second delivery of a write is refused because of the first", rules: history.Rules{Replayed: true},
			chances: faults.Chances{faults.Replay: 0.2, faults.LoseAnswer: 0.05}},
		{name: "cut", why: "connections lose bytes, or hold them back and deliver them late", trouble: cutOne, needs: 10},
		{name: "killed", why: "a server that is killed keeps what it has acknowledged", trouble: killServer, needs: 3},
		{name: "replicated", why: "the servers of a cluster agree, also while one is missing", trouble: killReplica,
			rules: history.Rules{Hasty: true}, replicas: 3, lasts: 5 * time.Second, quick: true},
	}
}

// TestRegisterIsLinearizable: elections rely on one property of a cell. It is one register for all
// clients.
func TestRegisterIsLinearizable(t *testing.T) {
	for _, r := range regimes() {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("%s,seed=%d", r.name, seed), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && !r.quick {
				t.Skip("the soak does it")
			}
			r.play(t, seed)
		})
	}
}

const (
	clients   = 5
	attention = 100 * time.Millisecond // how long a client waits for an answer
)

// arena is where clients work. Each uses one of the servers through its own relay.
type arena struct {
	servers []*natsd.Server
	relays  []*relay.Relay
}

func (r regime) arena(t testing.TB) (a arena) {
	if r.replicas > 1 {
		a.servers = startCluster(t)
	} else {
		a.servers = []*natsd.Server{startServer(t)}
	}
	for i := range clients {
		a.relays = append(a.relays, startRelay(t, a.servers[i%len(a.servers)]))
	}
	return a
}

func (r regime) play(t *testing.T, seed uint64) {
	a := r.arena(t)
	operator := connect(t, a.servers[0].URL())
	bucket := addBucket(t, operator, replicated(len(a.servers))).Bucket()
	last := openStore(t, operator, bucket)
	h := history.New(key)
	ctx, cancel := history.Lasting(cmp.Or(r.lasts, 2500*time.Millisecond), func() bool { return r.worth(h) })
	defer cancel()
	var playing sync.WaitGroup
	var stores []faults.Store
	for i, way := range a.relays {
		store := faults.New(openStore(t, connect(t, way.URL()), bucket), seed+uint64(i),
			faults.Plan{Chances: r.chances, MaxDelay: attention})
		stores = append(stores, store)
		playing.Go(func() {
			h.Play(ctx, store, history.Client{ID: i, Attention: attention, Rand: rand.New(rand.NewPCG(seed, uint64(i)))})
		})
	}
	for rng := rand.New(rand.NewPCG(seed, clients)); r.trouble != nil && ctx.Err() == nil; {
		r.trouble(t, rng, a)
	}
	playing.Wait()
	for _, store := range stores {
		store.Wait()
	}
	r.end(t, h, last)
}

// end reads once more, so that every applied write has been seen.
func (r regime) end(t *testing.T, h *history.History, s driver.Store) {
	wait.Until(t, "the last read", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, ok := h.Read(ctx, s, clients)
		return ok
	})
	reads, swaps, refusals, unknowns := h.Tally()
	t.Logf("%d reads, %d swaps, %d refusals, %d unknown", reads, swaps, refusals, unknowns)
	if !r.worth(h) {
		t.Errorf("this run proves nothing: %s", r.why)
	}
	h.Check(t, r.rules)
	if t.Failed() {
		t.Log(r.why)
	}
}

// worth reports whether enough has happened.
func (r regime) worth(h *history.History) bool {
	_, swaps, _, unknowns := h.Tally()
	return swaps >= 10 && unknowns >= r.needs
}

func cutOne(_ testing.TB, rng *rand.Rand, a arena) {
	r := a.relays[rng.IntN(len(a.relays))]
	mend := r.Heal
	switch rng.IntN(3) {
	case 0:
		r.Blackhole()
	case 1:
		r.Mute()
	case 2:
		r.Hold()
		mend = r.Release
	}
	time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
	mend()
	time.Sleep(20 * time.Millisecond)
}

func killServer(t testing.TB, rng *rand.Rand, a arena) {
	time.Sleep(time.Duration(300+rng.IntN(300)) * time.Millisecond)
	s := a.servers[rng.IntN(len(a.servers))]
	s.Kill()
	must(t, s.Start())
}

// killReplica leaves the others the time that they need to choose a new leader.
func killReplica(t testing.TB, rng *rand.Rand, a arena) {
	time.Sleep(time.Second)
	s := a.servers[rng.IntN(len(a.servers))]
	s.Kill()
	time.Sleep(time.Second)
	must(t, s.Start())
	time.Sleep(3 * time.Second)
}
