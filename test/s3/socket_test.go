//go:build integration

package s3

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

// startSocket starts a fake server on a port of the loopback interface.
func startSocket(t testing.TB, seed uint64, plan s3fake.Plan) *s3fake.Server {
	t.Helper()
	s, err := s3fake.Start(seed, plan, fakeBucket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func socketHarness(t testing.TB, opts ...s3object.Option) drivertest.Harness {
	t.Helper()
	s := startSocket(t, 0, s3fake.Plan{})
	r, err := relay.New(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	h := fakeHarness(t, s, r, opts...)
	h.Patience = wait.Left()
	return h
}

// TestFakeConformance runs alone, because it counts goroutines. With -short it runs only one of the
// two forms.
func TestFakeConformance(t *testing.T) {
	for name, opts := range map[string][]s3object.Option{
		"quoted": nil, "unquoted": {s3object.WithUnquotedETags()},
	} {
		if opts != nil && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t testing.TB) drivertest.Harness { return socketHarness(t, opts...) })
		})
	}
}

// TestFakeFaults is TestFaults over sockets and in real time, where the machine decides the order
// of requests.
func TestFakeFaults(t *testing.T) {
	plans, terms := faultPlans(), 4
	if testing.Short() {
		plans, terms = plans[:2], 2
	}
	var struck atomic.Int64
	t.Run("plans", func(t *testing.T) {
		for _, p := range plans {
			seed := rand.Uint64()
			t.Run(nameOf(p, seed), func(t *testing.T) {
				t.Parallel()
				f := &faulty{TB: t, terms: terms, server: startSocket(t, seed, p)}
				struck.Add(f.booked(p))
			})
		}
	})
	provesEnough(t, &struck, terms*len(plans))
}

// booked plays with a book of the checks by leaders.
func (f *faulty) booked(p s3fake.Plan) int64 {
	var book witness.Book
	var askers []*asking.Asker
	f.play(func(id string) func(*tenure.Term) {
		asker := asking.Start(func(election string, token uint64, stamps []int64) {
			book.Add(election, id, token, stamps...)
		})
		askers = append(askers, asker)
		return func(t *tenure.Term) { asker.Enter("billing", t, asking.ByTerm) }
	})
	for _, a := range askers {
		a.Stop()
	}
	v := book.Judge()
	if !v.Safe() {
		f.Error(v)
	}
	f.Logf("%d terms, %d answers of yes", v.Terms, v.Acts)
	return f.struck(p)
}

func BenchmarkFake(b *testing.B) {
	open := func(t testing.TB) drivertest.Harness {
		s := startSocket(t, 0, s3fake.Plan{})
		return drivertest.Harness{
			Store: openFake(t, s.Client()), Peer: openFake(t, s.Client()),
			FloorTick: time.Second, ContentVersions: true,
		}
	}
	drivertest.Benchmark(b, open)
	electiontest.Benchmark(b, open)
}
