//go:build integration

package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/internal/test/certificates"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/redisd"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// TestLeaderGoesOnWhenTheEraChanges: some time after its last replica left, a primary draws a new
// replication ID. The leader reads once, and keeps its term.
func TestLeaderGoesOnWhenTheEraChanges(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPair(t, "repl-backlog-ttl 1")
	s := open(t, p.primary)
	released(t, s)
	first := <-leads(t, ctx, s, tenure.Config{ID: "first", Lease: time.Minute, Tuning: tenure.Tuning{Renew: time.Second}})
	before, err := s.Read(ctx, "billing")
	rig.Must(t, err)
	rig.Must(t, p.replica.Kill())
	wait.Until(t, "a renewal in another era", func() bool {
		e, err := s.Read(ctx, "billing")
		return err == nil && e.Era != before.Era && !e.Unproven
	})
	if err := first.Err(); err != nil {
		t.Errorf("the leader lost its term: %v", err)
	}
}

// TestRestartIsAnotherEra: a server that starts again may have lost writes.
func TestRestartIsAnotherEra(t *testing.T) {
	for _, program := range []string{redisd.Redis, redisd.Valkey} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			redisd.Need(t, program)
			ctx := wait.Context(t)
			server := redisd.Start(t, program)
			s := open(t, server)
			v, err := s.CompareAndSwap(ctx, "k", "", []byte("x"))
			rig.Must(t, err)
			before, err := s.Read(ctx, "k")
			rig.Must(t, err)
			rig.Must(t, server.Stop())
			rig.Must(t, server.Start())
			var after driver.Entry
			wait.Succeeds(t, "a read", func(ctx context.Context) (err error) { after, err = s.Read(ctx, "k"); return err })
			if after.Era == before.Era || !after.Unproven || string(after.Value) != "x" {
				t.Errorf("before %+v, after %+v: want another era, unproven", before, after)
			}
			if _, err := s.CompareAndSwap(ctx, "k", v, []byte("y")); !errors.Is(err, driver.ErrConflict) {
				t.Errorf("a write from the former era: %v", err)
			}
		})
	}
}

// TestEditedValueIsUnproven: a value that was changed by hand is not what a member wrote.
func TestEditedValueIsUnproven(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	server := redisd.Start(t, redisd.Redis)
	s := open(t, server)
	_, err := s.CompareAndSwap(ctx, "k", "", []byte("x"))
	rig.Must(t, err)
	_, err = server.Do(ctx, "HSET", "tenure:k", "value", "y")
	rig.Must(t, err)
	if e, err := s.Read(ctx, "k"); err != nil || !e.Unproven {
		t.Errorf("%+v, %v: want it unproven", e, err)
	}
}

// TestFloorEditedByHand: a floor that is no number of microseconds counts for nothing, and the
// next write mends it. One that a clock may have written counts.
func TestFloorEditedByHand(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	server := redisd.Start(t, redisd.Redis)
	s := open(t, server)
	v, err := s.CompareAndSwap(ctx, "k", "", []byte("x"))
	rig.Must(t, err)
	before, err := s.Read(ctx, "k")
	rig.Must(t, err)
	ahead := fmt.Sprint(before.Floor + 1e12)
	for _, floor := range []string{
		"nan", "-nan", "inf", "-1", "1.5", "1e300", "0x7fffffffffff", "", "many", "7 7", strings.Repeat("9", 400), "9007199254740992", ahead,
	} {
		_, err := server.Do(ctx, "HSET", "tenure:k", "floor", floor)
		rig.Must(t, err)
		e, err := s.Read(ctx, "k")
		low, high := before.Floor, before.Floor+1e12-1 // within 11 days
		if floor == ahead {
			low, high = high+1, high+1e9
		}
		if err != nil || e.Unproven || e.Floor < low || e.Floor > high {
			t.Errorf("floor %.30q: got %+v, %v", floor, e, err)
		}
		if v, err = s.CompareAndSwap(ctx, "k", v, []byte("x")); err != nil {
			t.Fatalf("floor %.30q: %v", floor, err)
		}
		mended, err := server.Do(ctx, "HGET", "tenure:k", "floor")
		rig.Must(t, err)
		if n, err := strconv.ParseUint(mended, 10, 64); err != nil || n <= low || n > high+1 {
			t.Errorf("floor %.30q: the next write left %q, want from %d to %d", floor, mended, low+1, high)
		}
	}
}

// TestBusyPool: a call that waits for a connection until its context ends says so, and was not
// sent.
func TestBusyPool(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	server := redisd.Start(t, redisd.Redis)
	redisd.Start(t, redisd.Redis, "replicaof "+strings.ReplaceAll(server.Address(), ":", " ")).Until(t, "replication", "master_link_status:up")
	for _, replicas := range []int{0, 1} {
		r, err := relay.New("tcp://" + server.Address())
		rig.Must(t, err)
		t.Cleanup(r.Close)
		_, address, _ := strings.Cut(r.URL(), "//")
		option := rueidis.ClientOption{InitAddress: []string{address}, BlockingPoolSize: 1, ConnWriteTimeout: time.Hour}
		s, err := redisstore.Open(ctx, option, redisstore.WithWait(replicas))
		rig.Must(t, err)
		t.Cleanup(func() { rig.Must(t, s.Close()) })
		_, err = s.Read(ctx, "k") // so that there is a connection
		rig.Must(t, err)
		r.Hold()
		held := make(chan error)
		go func() {
			_, err := s.Read(ctx, "k")
			held <- err
		}()
		key, tries := "", 0
		wait.Until(t, "a call in the queue", func() bool { // it may be faster than the read
			tries++
			key = fmt.Sprint("queued", replicas, tries)
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			_, err := s.CompareAndSwap(ctx, key, "", []byte("x"))
			return errors.Is(err, driver.ErrPoolBusy) && errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "all 1 are in use")
		})
		r.Release()
		rig.Must(t, <-held)
		if e, err := s.Read(ctx, key); err != nil || !e.Absent() {
			t.Errorf("after a write that was never sent: %+v, %v", e, err)
		}
	}
}

// TestLostPushesAreReported: a watch learns that no changes are pushed, and that they are again.
func TestLostPushesAreReported(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	server := redisd.Start(t, redisd.Redis)
	s := open(t, server)
	var lost, again, value atomic.Bool
	stop, err := s.Watch(ctx, "k", func(e driver.Entry) {
		switch {
		case e.Lost != nil:
			lost.Store(true)
		case string(e.Value) == "x":
			value.Store(true)
		case lost.Load():
			again.Store(true)
		}
	})
	rig.Must(t, err)
	defer stop()
	rig.Must(t, server.Kill())
	wait.Until(t, "a push with Lost", lost.Load)
	rig.Must(t, server.Start())
	wait.Until(t, "a push without Lost", again.Load)
	_, err = s.CompareAndSwap(ctx, "k", "", []byte("x"))
	rig.Must(t, err)
	wait.Until(t, "the pushed value", value.Load)
}

// TestFalseMessages: a message that no store has sent makes an election read, at most.
func TestFalseMessages(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	server := redisd.Start(t, redisd.Redis)
	s := open(t, server)
	seen := make(chan driver.Entry, 10)
	stop, err := s.Watch(ctx, "k", func(e driver.Entry) { seen <- e })
	rig.Must(t, err)
	defer stop()
	for _, message := range []string{"k", "k\nx\n1\ne\nvalue", "k\n\n\n\n"} {
		_, err := server.Do(ctx, "PUBLISH", "tenure:changes:0", message)
		rig.Must(t, err)
		select {
		case e := <-seen:
			if !e.Unverified || !e.Absent() || e.Version != "" {
				t.Errorf("%q: %+v: want only that there may be a change", message, e)
			}
		case <-ctx.Done():
			t.Fatalf("%q: nothing was pushed", message)
		}
	}
}

// TestInspect: each setting that loses records is found.
func TestInspect(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	alone := redisd.Start(t, redisd.Redis)
	for _, c := range []struct {
		name    string
		server  *redisd.Server
		setting []string // of CONFIG SET
		wait    int
		want    map[string]driver.Severity
	}{
		{"one server that syncs", alone, nil, 0, nil},
		{"a replica without WAIT", p.primary, nil, 0, map[string]driver.Severity{"wait": driver.Unsafe}},
		{"a replica with WAIT", p.primary, nil, 1, nil},
		{"WAIT for more than there are", p.primary, nil, 2, map[string]driver.Severity{"wait": driver.Warning}},
		{"synced each second", alone, []string{"appendfsync", "everysec"}, 0, map[string]driver.Severity{"appendfsync": driver.Warning}},
		{"evicts", alone, []string{"appendfsync", "always", "maxmemory-policy", "allkeys-lru"}, 0, map[string]driver.Severity{"maxmemory-policy": driver.Unsafe}},
		{"keeps nothing", alone, []string{"maxmemory-policy", "volatile-lru", "appendonly", "no"}, 0, map[string]driver.Severity{"appendonly": driver.Unsafe}},
	} {
		if len(c.setting) > 0 {
			_, err := c.server.Do(wait.Context(t), append([]string{"CONFIG", "SET"}, c.setting...)...)
			rig.Must(t, err)
		}
		found, err := open(t, c.server, redisstore.WithWait(c.wait)).Inspect(wait.Context(t), 15*time.Second)
		rig.Must(t, err)
		got := map[string]driver.Severity{}
		for _, f := range found {
			got[f.Setting] = f.Severity
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, found, c.want)
		}
	}
}

// TestTLS: a server that wants certificates of its clients takes one of its authority.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca, cert, key := certificates.New(t)
	port, err := ports.Free(1)
	rig.Must(t, err)
	redisd.Start(t, redisd.Redis, fmt.Sprint("tls-port ", port[0]), "tls-cert-file "+cert, "tls-key-file "+key, "tls-ca-cert-file "+ca)
	pem, err := os.ReadFile(ca)
	rig.Must(t, err)
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(pem)
	pair, err := tls.LoadX509KeyPair(cert, key)
	rig.Must(t, err)
	other, _, _ := certificates.New(t)
	pem, err = os.ReadFile(other)
	rig.Must(t, err)
	stranger := x509.NewCertPool()
	stranger.AppendCertsFromPEM(pem)
	for _, c := range []struct {
		why   string
		roots *x509.CertPool
		pairs []tls.Certificate
		works bool
	}{
		{"both know the authority", known, []tls.Certificate{pair}, true},
		{"the client has no certificate", known, nil, false},
		{"the client does not know the authority", stranger, []tls.Certificate{pair}, false},
	} {
		option := rueidis.ClientOption{
			InitAddress: []string{ports.Address(port[0])},
			TLSConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots, Certificates: c.pairs},
		}
		s, err := redisstore.Open(wait.Context(t), option)
		if err == nil {
			_, err = s.CompareAndSwap(wait.Context(t), "k", "", []byte("x"))
			rig.Must(t, s.Close())
		}
		if (err == nil) != c.works {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

// TestWatchBeginsWhileItConnects: a watch whose deadline comes before the subscription begins
// without pushes, and learns when they come.
func TestWatchBeginsWhileItConnects(t *testing.T) {
	t.Parallel()
	server := redisd.Start(t, redisd.Redis)
	r, err := relay.New("tcp://" + server.Address())
	rig.Must(t, err)
	t.Cleanup(r.Close)
	_, address, _ := strings.Cut(r.URL(), "//")
	s, err := redisstore.Open(wait.Context(t), rueidis.ClientOption{InitAddress: []string{address}})
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, s.Close()) })
	r.Hold()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var lost, again atomic.Bool
	stop, err := s.Watch(ctx, "k", func(e driver.Entry) {
		if e.Lost == nil && lost.Load() {
			again.Store(true)
		}
		lost.Store(lost.Load() || e.Lost != nil)
	})
	rig.Must(t, err)
	defer stop()
	wait.Until(t, "a push with Lost", lost.Load)
	r.Release()
	wait.Until(t, "a push without Lost", again.Load)
}
