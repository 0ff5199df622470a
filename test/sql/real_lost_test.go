//go:build integration

package sql

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// TestRealLostPushesAreReported: the address for listening is a forwarder, which ends, or passes
// nothing on. The elections say so, poll, and hand over as polled ones do. When it works again,
// they are pushed again.
func TestRealLostPushesAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(*relay.Relay)
		mend func(*relay.Relay) error
	}{
		"ends":              {(*relay.Relay).Cut, (*relay.Relay).Restore},
		"passes nothing on": {(*relay.Relay).Blackhole, func(r *relay.Relay) error { r.Heal(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sqld.StartPostgres(t)
			dsn := p.DSN("postgres", "postgres")
			way, err := relay.New(dsn)
			must(t, err)
			defer way.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			troubles := make(chan error, 100)
			members := map[string]*member{}
			for _, id := range []string{"a", "b"} {
				listen, err := pgx.ParseConfig("postgres://postgres@" + strings.TrimPrefix(way.URL(), "nats://") + "/postgres?sslmode=disable")
				must(t, err)
				s, err := pgxstore.New(sqld.Open(t, "pgx", dsn), listen)
				must(t, err)
				must(t, s.Create(ctx))
				members[id] = joins(t, ctx, s, tenure.Config{ID: id, Lease: 2 * time.Second, OnEvent: func(e tenure.Event) {
					if e.Kind == tenure.EventTrouble && strings.Contains(e.Cause.Error(), "no notifications come") {
						troubles <- e.Cause
					}
				}})
			}
			until := func(pushed bool) {
				for _, m := range members {
					_, err := m.Wait(ctx, func(s tenure.Status) bool { return s.Pushed == pushed && s.Leader.ID != "" })
					must(t, err)
				}
			}
			until(true)
			c.lose(way)
			until(false)
			if cause := <-troubles; errors.Is(cause, context.Canceled) {
				t.Errorf("the trouble is %v", cause)
			}
			var old *tenure.Term
			next := members["a"]
			select {
			case old = <-members["a"].leads:
				next = members["b"]
			case old = <-members["b"].leads:
			}
			must(t, next.HandOver(ctx, ""))
			if term := <-next.leads; old.Err() == nil || term.Token() <= old.Token() {
				t.Errorf("after the hand-over: %v, token %d after %d", old.Err(), term.Token(), old.Token())
			}
			must(t, c.mend(way))
			until(true)
		})
	}
}

// TestRealWatchBeginsWhileItConnects: on an overloaded server a connection takes longer than a call
// may. The watch begins without notifications, says so, and says when they come.
func TestRealWatchBeginsWhileItConnects(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	dsn := p.DSN("postgres", "postgres")
	way, err := relay.New(dsn)
	must(t, err)
	defer way.Close()
	listen, err := pgx.ParseConfig("postgres://postgres@" + strings.TrimPrefix(way.URL(), "nats://") + "/postgres?sslmode=disable")
	must(t, err)
	s, err := pgxstore.New(sqld.Open(t, "pgx", dsn), listen)
	must(t, err)
	must(t, s.Create(t.Context()))
	way.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	seen := make(chan driver.Entry, 100)
	stop, err := s.Watch(ctx, "billing", func(e driver.Entry) { seen <- e })
	must(t, err)
	defer stop()
	if e := <-seen; !errors.Is(e.Lost, driver.ErrConnecting) {
		t.Errorf("the first push is %+v", e)
	}
	way.Heal()
	for e := range seen {
		if e.Lost == nil {
			break
		}
	}
	v, err := s.CompareAndSwap(t.Context(), "billing", "", []byte("v"))
	must(t, err)
	for e := range seen {
		if e.Version == v {
			break
		}
	}
}
