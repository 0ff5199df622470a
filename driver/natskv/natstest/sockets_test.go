//go:build integration

package natstest

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// long skips repetitions of a test where one pass is enough.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one pass only, because of -short")
	}
}

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
			s := StartServer(t, withLimitedUser)
			drivertest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}

func TestElectionsOnSockets(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			v.skip(t)
			t.Parallel()
			s := StartServer(t, withLimitedUser)
			electiontest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}

// TestCloseLeavesNothing: Close leaves nothing behind on a connection that stays open. The server's
// goroutines do not count.
func TestCloseLeavesNothing(t *testing.T) {
	f := newFixture(t)
	goroutines := func() int {
		all := make([]byte, 4<<20)
		all = all[:runtime.Stack(all, true)]
		return bytes.Count(all, []byte("nats.go")) + bytes.Count(all, []byte("driver/natskv."))
	}
	before := goroutines()
	subs := f.nc.NumSubscriptions()
	for name, s := range f.each() {
		h := watchAll(t, s, testKey)
		h.await(t, versionOf(f.put(testKey, "v")))
		f.must(s.Close())
		f.must(s.Close())
		if _, err := s.Watch(wait.Context(t), testKey, func(driver.Entry) {}); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s: a watch after close: %v", name, err)
		}
		h.stop()
		f.read(s, testKey)
	}
	wait.Until(t, "the goroutines are gone", func() bool { return goroutines() <= before })
	wait.Until(t, "the subscriptions are gone", func() bool { return f.nc.NumSubscriptions() <= subs })
}
