//go:build integration

package sql

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/history"
)

const (
	clients = 8
	// attention is how long a client waits for an answer: far less than a pause.
	attention = 250 * time.Millisecond
)

// regime is a fault of a server while clients contend for a cell.
type regime struct {
	name, why string
	trouble   func(t testing.TB, rng *rand.Rand, s site)
	lasts     time.Duration
	// crashes: a database that shows writes before they are durable may take some back. InnoDB does
	// so without a binary log: docs/sql.md.
	crashes bool
	// needs is the number of operations with an unknown outcome that make the run useful.
	needs int
}

var regimes = []regime{
	{name: "contended", why: "many clients alone", lasts: 2 * time.Second},
	{name: "killed", why: "a server that is killed keeps what it has acknowledged", lasts: 3 * time.Second, needs: clients,
		crashes: true,
		trouble: func(t testing.TB, rng *rand.Rand, s site) {
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			must(t, s.Kill())
			must(t, s.Start())
		}},
	{name: "stopped", why: "a server that shuts down answers no write that it forgets", lasts: 2 * time.Second, needs: 1,
		trouble: func(t testing.TB, rng *rand.Rand, s site) {
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			must(t, s.Stop())
			must(t, s.Start())
		}},
	{name: "paused", why: "a server that goes on after a pause carries out what was given up long ago", lasts: 3 * time.Second, needs: clients,
		trouble: func(t testing.TB, rng *rand.Rand, s site) {
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			must(t, s.Pause())
			time.Sleep(2 * attention)
			must(t, s.Resume())
		}},
}

// TestRealRegisterIsLinearizable: elections rely on one property of a cell. It is one register for
// all clients.
func TestRealRegisterIsLinearizable(t *testing.T) {
	eachSite(t, func(t *testing.T, s site) {
		open(t, s.pool(t), s.dialect)
		for _, r := range regimes {
			seed := rand.Uint64()
			if !t.Run(fmt.Sprintf("%s,seed=%d", r.name, seed), func(t *testing.T) { r.play(t, s, seed) }) {
				return // the server may be down
			}
		}
	})
}

func (r regime) play(t *testing.T, s site, seed uint64) {
	h := history.New("register-" + r.name)
	ctx, cancel := history.Lasting(r.lasts, func() bool { return r.worth(h) })
	defer cancel()
	var playing sync.WaitGroup
	for i := range clients {
		store := over(t, s.pool(t), s.dialect)
		c := history.Client{ID: i, Attention: attention, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		playing.Go(func() { h.Play(ctx, store, c) })
	}
	for rng := rand.New(rand.NewPCG(seed, clients)); r.trouble != nil && ctx.Err() == nil; {
		r.trouble(t, rng, s)
	}
	playing.Wait()
	last := over(t, s.pool(t), s.dialect)
	// Transactions that were given up may hold the row's lock for a moment.
	for ctx := wait.Context(t); ctx.Err() == nil; {
		if _, ok := h.Read(ctx, last, clients); ok {
			break
		}
	}
	reads, swaps, refusals, unknowns := h.Tally()
	t.Logf("%d reads, %d swaps, %d refusals, %d unknown", reads, swaps, refusals, unknowns)
	h.Check(t, history.Rules{Early: r.crashes && s.name == "mariadb"})
	if !r.worth(h) {
		t.Errorf("too little has happened to prove that %s", r.why)
	}
}

// worth reports whether enough has happened.
func (r regime) worth(h *history.History) bool {
	_, swaps, refusals, unknowns := h.Tally()
	return swaps >= 20 && refusals >= 10 && unknowns >= r.needs
}
