//go:build integration

package peers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/certificates"
	"github.com/tenure-go/tenure/internal/test/wait"
)

func TestFollowersReceivePushesFromTheLeader(t *testing.T) {
	ca, cert, key := certificates.New(t)
	for name, args := range map[string][]string{
		"http":  {"--peer", "127.0.0.1:0"},
		"https": {"--peer", "127.0.0.1:0", "--peer-ca", ca, "--peer-cert", cert, "--peer-key", key},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parse(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			if s.Scheme() != name {
				t.Errorf("scheme %s", s.Scheme())
			}
			ctx := wait.Context(t)
			store := memory.NewPolled()
			leader, follower := join(ctx, t, s, store), join(ctx, t, s, store)
			lead(ctx, t, leader)
			pushed(ctx, t, follower)
		})
	}
}

func join(ctx context.Context, t *testing.T, s *peers.Settings, store driver.Store) *peers.Member {
	t.Helper()
	m, err := s.Open(ctx, store, func(_ string, err error) {
		if err != nil && t.Context().Err() == nil {
			t.Log(err) // on a slow machine the next push arrives
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func lead(ctx context.Context, t *testing.T, m *peers.Member) {
	t.Helper()
	e, err := tenure.New(m.Store, "billing", tenure.Config{ID: "leader", Address: m.Address, Lease: 10 * time.Minute, Tuning: tenure.Tuning{Renew: 300 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Campaign(ctx); err != nil {
		t.Fatal(err)
	}
}

// pushed waits for a renewal that the leader pushed: the follower has read the store only once.
func pushed(ctx context.Context, t *testing.T, m *peers.Member) {
	t.Helper()
	pushes := make(chan driver.Entry, 100)
	stop, err := m.Watch(ctx, "billing", func(e driver.Entry) { pushes <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	read, err := m.Read(ctx, "billing")
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	m := join(t.Context(), t, s, memory.NewPolled())
	s, err = parse(t, "--peer", m.Address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), memory.NewPolled(), func(string, error) {}); err == nil || !strings.Contains(err.Error(), "--peer "+m.Address) {
		t.Errorf("got %v", err)
	}
}
