//go:build integration

package s3

import (
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

const (
	realClients = 16
	// realAttention is how long a client waits for an answer: far less than a pause.
	realAttention = 250 * time.Millisecond
)

// realRegime is a fault of a server while clients contend for a cell.
type realRegime struct {
	name    string
	why     string
	trouble func(testing.TB, *rand.Rand, *s3d.Server)
	lasts   time.Duration
	// needs is the number of operations with an unknown outcome that make the run useful.
	needs int
}

func realRegimes() []realRegime {
	return []realRegime{
		{name: "contended", why: "many clients alone", lasts: 2500 * time.Millisecond},
		{name: "killed", why: "a server that is killed keeps what it has acknowledged", trouble: killReal,
			lasts: 4 * time.Second, needs: realClients},
		{name: "paused", why: "a server that goes on after a pause carries out what was given up long ago", trouble: pauseReal,
			lasts: 4 * time.Second, needs: realClients},
	}
}

// TestRealRegisterIsLinearizable: elections rely on one property of a cell. It is one register for
// all clients.
func TestRealRegisterIsLinearizable(t *testing.T) {
	eachReal(t, soundServers(), func(t *testing.T, server *s3d.Server) {
		for _, r := range realRegimes() {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("%s,seed=%d", r.name, seed), func(t *testing.T) { r.play(t, server, seed) })
		}
	})
}

func (r realRegime) play(t *testing.T, server *s3d.Server, seed uint64) {
	bucket, urls := server.Bucket(t), server.URLs()
	h := history.New("register")
	ctx, cancel := history.Lasting(r.lasts, func() bool { return r.worth(h) })
	defer cancel()
	var playing sync.WaitGroup
	for i := range realClients {
		store := realStore(t, urls[i%len(urls)], bucket)
		c := history.Client{ID: i, Attention: realAttention, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		playing.Go(func() { h.Play(ctx, store, c) })
	}
	for rng := rand.New(rand.NewPCG(seed, realClients)); r.trouble != nil && ctx.Err() == nil; {
		r.trouble(t, rng, server)
	}
	playing.Wait()
	if _, ok := h.Read(wait.Context(t), realStore(t, lastOf(urls), bucket), realClients); !ok {
		t.Fatal("the last read fails")
	}
	r.judge(t, server.Kind, h)
}

func (r realRegime) judge(t *testing.T, k s3d.Kind, h *history.History) {
	reads, swaps, refusals, unknowns := h.Tally()
	t.Logf("%d reads, %d swaps, %d refusals, %d unknown", reads, swaps, refusals, unknowns)
	if !r.worth(h) {
		t.Errorf("this run proves nothing: %s", r.why)
	}
	rules := history.Rules{}
	if k != s3d.MinIO {
		rules.Version = etagOf
	}
	h.Check(t, rules)
	t.Logf("%d torn reads", h.Torn())
	if t.Failed() {
		t.Log(r.why)
	}
}

// worth reports whether enough has happened.
func (r realRegime) worth(h *history.History) bool {
	_, swaps, refusals, unknowns := h.Tally()
	return swaps >= 10 && refusals >= 10 && unknowns >= r.needs
}

// etagOf returns the version of a value. versitygw 1.8.0 first reads an object's ETag and then
// opens the object, so that the ETag may be that of the content before. It never is that of a later
// content, which could cost a leader its lease.
func etagOf(value string) driver.Version {
	return driver.Version(fmt.Sprintf("%x", md5.Sum([]byte(value))))
}

// killReal lets the clients work before and after the kill, so that there is something to lose.
func killReal(t testing.TB, rng *rand.Rand, server *s3d.Server) {
	url := someRealTime(rng, server)
	if err := server.Kill(url); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(wait.Context(t), url); err != nil {
		t.Fatal(err)
	}
}

func pauseReal(t testing.TB, rng *rand.Rand, server *s3d.Server) {
	url := someRealTime(rng, server)
	if err := server.Pause(url); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * realAttention) // the pause
	if err := server.Resume(url); err != nil {
		t.Fatal(err)
	}
}

// someRealTime waits before a fault, and returns the URL of the process that the fault hits.
func someRealTime(rng *rand.Rand, server *s3d.Server) (url string) {
	time.Sleep(time.Duration(300+rng.IntN(300)) * time.Millisecond)
	urls := server.URLs()
	return urls[rng.IntN(len(urls))]
}
