//go:build integration

package stores

import (
	"flag"
	"os"
	"testing"

	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rigs"
)

func TestMain(m *testing.M) {
	natsd.Main()
	flag.Parse()
	code := m.Run()
	natsd.End()
	kafkad.End()
	os.Exit(code)
}

// each runs a test on each rig, one after another.
func each(t *testing.T, test func(t *testing.T, r rig.Rig)) {
	for _, r := range rigs.All() {
		t.Run(r.Name, func(t *testing.T) {
			if testing.Short() && r.Soak {
				t.Skip("the soak does it")
			}
			test(t, r)
		})
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
	each(t, func(t *testing.T, r rig.Rig) { drivertest.Run(t, harness(r.Start(t, true))) })
}

func TestElections(t *testing.T) {
	each(t, func(t *testing.T, r rig.Rig) {
		if testing.Short() && r.SoakElections {
			t.Skip("the soak does it")
		}
		electiontest.Run(t, harness(r.Start(t, true)))
	})
}
