//go:build integration

package peers_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/certificates"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/peer"
)

func TestFollowersReceivePushesFromTheLeader(t *testing.T) {
	ca, cert, key := certificates.New(t)
	for name, args := range map[string][]string{
		"http":  {"--peer", "127.0.0.1:0"},
		"https": {"--peer", "127.0.0.1:0", "--peer-ca", ca, "--peer-cert", cert, "--peer-key", key},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parse(t, args...)
			must.OK(t, err)
			if s.Scheme() != name {
				t.Errorf("scheme %s", s.Scheme())
			}
			ctx := wait.Context(t)
			store := memory.NewPolled()
			leader, follower := join(t, s, store, nil), join(t, s, store, nil)
			lead(ctx, t, leader)
			pushed(ctx, t, follower)
		})
	}
}

// join opens a member. Without onError errors are ignored: on a slow machine the next push arrives.
func join(t *testing.T, s *peers.Settings, store driver.Store, onError func(string, error)) *peers.Member {
	t.Helper()
	if onError == nil {
		onError = func(string, error) {}
	}
	m, err := s.Open(t.Context(), store, onError)
	must.OK(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func lead(ctx context.Context, t *testing.T, m *peers.Member) {
	t.Helper()
	e, err := tenure.New(m.Store, "billing", tenure.Config{ID: "leader", Address: m.Address, Lease: 10 * time.Minute, Tuning: tenure.Tuning{Renew: 300 * time.Millisecond}})
	must.OK(t, err)
	if _, err := e.Campaign(ctx); err != nil {
		t.Fatal(err)
	}
}

// pushed waits for a renewal that the leader pushed: the follower has read the store only once.
func pushed(ctx context.Context, t *testing.T, m *peers.Member) {
	t.Helper()
	pushes := make(chan driver.Entry, 100)
	stop, err := m.Watch(ctx, "billing", func(e driver.Entry) { pushes <- e })
	must.OK(t, err)
	defer stop()
	read, err := m.Read(ctx, "billing")
	must.OK(t, err)
	for {
		select {
		case e := <-pushes:
			if !e.Absent() && e.Version != read.Version {
				return
			}
		case <-ctx.Done():
			t.Fatal("the follower receives nothing")
		}
	}
}

func TestPortInUse(t *testing.T) {
	s, err := parse(t, "--peer", "127.0.0.1:0")
	must.OK(t, err)
	m := join(t, s, memory.NewPolled(), nil)
	s, err = parse(t, "--peer", m.Address)
	must.OK(t, err)
	if _, err := s.Open(t.Context(), memory.NewPolled(), func(string, error) {}); err == nil || !strings.Contains(err.Error(), "--peer "+m.Address) {
		t.Errorf("got %v", err)
	}
}

// TestExpiredCertificates: the certificate of a leader expires, and a follower refuses it. After
// the files are renewed, the same leader reports to the follower again.
func TestExpiredCertificates(t *testing.T) {
	const brief = 2 * time.Second // a certificate is exact to the second
	ca, renew := certificates.Renewed(t)
	store := memory.NewPolled()
	open := func(cert, key string, onError func(string, error)) *peers.Member {
		s, err := parse(t, "--peer", "127.0.0.1:0", "--peer-ca", ca, "--peer-cert", cert, "--peer-key", key)
		must.OK(t, err)
		return join(t, s, store, onError)
	}
	cert, key := renew("leader", brief)
	expired := time.Now().Add(brief)
	var stale atomic.Int32
	leader := open(cert, key, func(_ string, err error) {
		if errors.Is(err, peer.ErrCertificates) {
			stale.Add(1)
		}
	})
	lead(t.Context(), t, leader)
	wait.Until(t, "the certificate expires", func() bool { return time.Now().After(expired) })

	refused := make(chan string, 100)
	cert, key = renew("follower", time.Hour)
	follower := open(cert, key, func(_ string, err error) { refused <- fmt.Sprint(err) })
	pushed := make(chan driver.Entry, 100)
	stop, err := follower.Watch(t.Context(), "billing", func(e driver.Entry) { pushed <- e })
	must.OK(t, err)
	defer stop()
	if _, err := follower.Read(t.Context(), "billing"); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(<-refused, "expired") {
	}
	wait.Until(t, "the clock shows another second, and more connections are refused", func() bool {
		_, _ = tls.Dial("tcp", leader.Address, &tls.Config{InsecureSkipVerify: true})
		return time.Since(expired) > brief
	})
	if n := stale.Load(); n != 1 {
		t.Errorf("an expired certificate is reported %d times", n)
	}
	renew("leader", time.Hour)
	for (<-pushed).Absent() {
	}
}
