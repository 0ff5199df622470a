//go:build integration

package natskv

import (
	"testing"

	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/electiontest"
)

func (v variant) skip(t *testing.T) {
	t.Helper()
	if v.rare {
		long(t)
	}
}

func TestConformanceOnSockets(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			v.skip(t)
			s := startServer(t, withLimitedUser)
			drivertest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}

func TestElectionsOnSockets(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			v.skip(t)
			t.Parallel()
			s := startServer(t, withLimitedUser)
			electiontest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}
