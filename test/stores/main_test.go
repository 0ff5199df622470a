//go:build integration

package stores

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rigs"
)

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	natsd.Main()
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	natsd.End()
	kafkad.End()
	os.Exit(code)
}

// faulty skips the faults of a rig in the short pass, if another rig has them.
func faulty(t *testing.T, r rig.Rig) {
	t.Helper()
	if testing.Short() && r.SoakFaults {
		t.Skip("the soak does it")
	}
}

// each runs a test on each rig, one after another.
func each(t *testing.T, test func(t *testing.T, r rig.Rig)) {
	for _, r := range rigs.All() {
		on(t, r, test)
	}
}

func on(t *testing.T, r rig.Rig, test func(t *testing.T, r rig.Rig)) {
	t.Run(r.Name, func(t *testing.T) {
		if testing.Short() && r.Soak {
			t.Skip("the soak does it")
		}
		test(t, r)
	})
}

// apart is each for tests that need no peace: rigs and tests run at the same time. Rigs whose tests
// share the servers come first, one after another.
func apart(t *testing.T, test func(t *testing.T, r rig.Rig)) {
	for _, r := range rigs.All() {
		if r.Shared {
			on(t, r, test)
		}
	}
	t.Parallel()
	for _, r := range rigs.All() {
		if !r.Shared {
			on(t, r, func(t *testing.T, r rig.Rig) {
				t.Parallel()
				test(t, r)
			})
		}
	}
}

// harness returns the site for the conformance kit.
func harness(s rig.Site) func(testing.TB) drivertest.Harness {
	return func(t testing.TB) drivertest.Harness {
		h := s.Kit(t)
		var way rig.Way
		if h.Store, way = s.Open(t, 0); way != nil {
			h.Cut = func() func() {
				way.Blackhole()
				return way.Heal
			}
		}
		h.Peer, _ = s.Open(t, 1)
		return h
	}
}

// TestConformance runs one rig after another, because the kit counts goroutines.
func TestConformance(t *testing.T) {
	each(t, func(t *testing.T, r rig.Rig) {
		s := r.Start(t, true)
		drivertest.Run(t, harness(s))
		for _, f := range s.Faults() {
			if testing.Short() || !f.Serves {
				continue
			}
			t.Run(f.Name, func(t *testing.T) {
				defer f.Fall(t, rand.New(rand.NewPCG(0, 0)))()
				drivertest.Run(t, harness(s))
			})
		}
	})
}

func TestElections(t *testing.T) {
	apart(t, func(t *testing.T, r rig.Rig) {
		if testing.Short() && r.SoakElections {
			t.Skip("the soak does it")
		}
		electiontest.Run(t, harness(r.Start(t, true)))
	})
}
