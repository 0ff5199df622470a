//go:build integration

package sql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/reign"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// pushes returns a store over its own pool that listens at an address.
func pushes(t testing.TB, pool, listen string) *pgxstore.Store {
	t.Helper()
	config, err := pgx.ParseConfig(listen)
	must(t, err)
	s, err := pgxstore.New(sqld.Open(t, "pgx", pool), config)
	must(t, err)
	must(t, s.Create(t.Context()))
	return s
}

// TestRealPoolersAreRefused: a LISTEN behind a pooler would stay on a session that other clients
// get.
func TestRealPoolersAreRefused(t *testing.T) {
	p := sqld.StartPostgres(t)
	direct := p.DSN("postgres", "postgres")
	for _, mode := range []string{"transaction", "session"} {
		b := sqld.StartPgBouncer(t, p, mode)
		pooled := b.DSN("postgres", "postgres")
		s := pushes(t, pooled, pooled)
		if _, err := s.Watch(t.Context(), "billing", func(driver.Entry) {}); !errors.Is(err, pgxstore.ErrPooled) {
			t.Errorf("in mode %s, watching through the pooler: %v", mode, err)
		}
		s = pushes(t, pooled, direct)
		seen := make(chan driver.Version, 10)
		stop, err := s.Watch(t.Context(), "billing "+mode, func(e driver.Entry) { seen <- e.Version })
		must(t, err)
		defer stop()
		v, err := s.CompareAndSwap(t.Context(), "billing "+mode, "", []byte("value"))
		must(t, err)
		if got := <-seen; got != v {
			t.Errorf("in mode %s, pushed is %q, written was %q", mode, got, v)
		}
	}
	var listening int
	must(t, p.Open(t, "postgres", "postgres").QueryRow("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'").Scan(&listening))
	if listening > 2 {
		t.Errorf("%d sessions listen, more than the two that passed the poolers by", listening)
	}
}

// TestRealListeningElsewhere: two databases of one server have tables with one name.
func TestRealListeningElsewhere(t *testing.T) {
	p := sqld.StartPostgres(t)
	run(t, p.Open(t, "postgres", "postgres"), "CREATE DATABASE other")
	pushes(t, p.DSN("postgres", "other"), p.DSN("postgres", "other"))
	s := pushes(t, p.DSN("postgres", "postgres"), p.DSN("postgres", "other"))
	if _, err := s.Watch(t.Context(), "billing", func(driver.Entry) {}); !errors.Is(err, pgxstore.ErrElsewhere) {
		t.Errorf("got %v", err)
	}
}

// dsnOver returns the database's name over a relay.
func dsnOver(way *relay.Relay) string {
	return "postgres://postgres@" + strings.TrimPrefix(way.URL(), "nats://") + "/postgres?sslmode=disable"
}

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
			ctx := wait.Context(t)
			r := reign.New(t, "billing", asking.ByTerm)
			troubles := make(chan error, 100)
			var members []*reign.Candidate
			for _, id := range []string{"a", "b"} {
				s := pushes(t, dsn, dsnOver(way))
				members = append(members, r.Join(s, nil, tenure.Config{ID: id, Lease: 2 * time.Second, OnEvent: func(e tenure.Event) {
					if e.Kind == tenure.EventTrouble && strings.Contains(e.Cause.Error(), "no notifications come") {
						troubles <- e.Cause
					}
				}}))
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
			old := r.Leader(0)
			must(t, old.By.HandOver(ctx, ""))
			if term := r.Leader(old.Token()); old.Err() == nil {
				t.Errorf("term %d of %s began within term %d", term.Token(), term.By.ID(), old.Token())
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
	s := pushes(t, dsn, dsnOver(way))
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

// TestRealRotationListener: the hooks of the pool and of the connection that listens get the
// password from the program. After a rotation the store still pushes.
func TestRealRotationListener(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	p.Admit(t, "host all member 127.0.0.1/32 scram-sha-256")
	admin := p.Open(t, "postgres", "postgres")
	open(t, admin, sqlstore.Postgres())
	run(t, admin, "CREATE ROLE member LOGIN", "GRANT SELECT, INSERT, UPDATE ON tenure TO member")
	var secret atomic.Value
	replace := func(s string) {
		secret.Store(s)
		run(t, admin, "ALTER ROLE member PASSWORD '"+s+"'",
			"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = 'member'")
	}
	replace("one")
	config, err := pgx.ParseConfig(p.DSN("member", "postgres"))
	must(t, err)
	config.Password = "one"
	before := func(_ context.Context, c *pgx.ConnConfig) error {
		c.Password = secret.Load().(string)
		return nil
	}
	db := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(before))
	t.Cleanup(func() { _ = db.Close() })
	s, err := pgxstore.New(db, config)
	must(t, err)
	s.BeforeConnect(before)
	seen := make(chan driver.Entry, 100)
	stop, err := s.Watch(t.Context(), "billing", func(e driver.Entry) { seen <- e })
	must(t, err)
	defer stop()
	replace("two")
	for e := range seen {
		if e.Unverified && e.Version == "" {
			break // it listens again
		}
	}
	wait.Succeeds(t, "the pool connects again", func(ctx context.Context) error {
		_, err := s.Read(ctx, "billing")
		return err
	})
	v, err := s.CompareAndSwap(t.Context(), "billing", "", []byte("value"))
	must(t, err)
	for e := range seen {
		if e.Version == v {
			return
		}
	}
}

// forger is a role without any right on the table. Like every client that can connect, it may
// notify.
func forger(t *testing.T, p *sqld.Postgres) *sql.DB {
	t.Helper()
	run(t, p.Open(t, "postgres", "postgres"), "CREATE ROLE forger LOGIN", "REVOKE ALL ON tenure FROM PUBLIC")
	return p.Open(t, "forger", "postgres")
}

// notifies sends a notification to the channel of a store's table.
func notifies(t *testing.T, db *sql.DB, s *pgxstore.Store, payload string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "SELECT pg_notify(("+s.ChannelQuery()+"), $1)", payload); err != nil {
		t.Fatal(err)
	}
}

// TestRealForgedNotifications: whatever other clients notify, the leader goes on, and no other
// member claims.
func TestRealForgedNotifications(t *testing.T) {
	p := sqld.StartPostgres(t)
	dsn := p.DSN("postgres", "postgres")
	const lease = 3 * time.Second
	r := reign.New(t, "billing", asking.ByTerm)
	stores, members := map[string]counted{}, map[string]*reign.Candidate{}
	for _, id := range []string{"a", "b", "c"} {
		stores[id] = counted{pushes(t, dsn, dsn), new(atomic.Int32)}
		members[id] = r.Join(stores[id], nil, tenure.Config{ID: id, Lease: lease})
	}
	leader := r.Leader(0)
	stranger, store := forger(t, p), stores[leader.By.ID()]
	if _, err := stranger.ExecContext(t.Context(), "SELECT value FROM tenure"); err == nil {
		t.Fatal("the forger may read the table")
	}
	now, err := store.Read(t.Context(), "billing")
	must(t, err)
	lies, arrived := forgeries(t, now), arrivals(t, store.Store)
	for _, s := range stores {
		s.swaps.Store(0)
	}
	// For a lease each forged notification comes alone, with time to act on it. Then they come as
	// fast as possible.
	for began := time.Now(); time.Since(began) < 3*lease; {
		for _, lie := range lies {
			notifies(t, stranger, store.Store, lie)
			for id, m := range members {
				if s := m.Status(); s.Leader.Term != leader.Token() {
					t.Fatalf("%s shows %+v as the leader, and term %d leads", id, s.Leader, leader.Token())
				}
			}
			if time.Since(began) < lease {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
	if arrived.Load() == 0 {
		t.Fatal("no forged term reached an election")
	}
	if err := leader.Err(); err != nil {
		t.Fatalf("the leader lost its term: %v", err)
	}
	for id, s := range stores {
		if n := s.swaps.Load(); id != leader.By.ID() && n > 0 {
			t.Errorf("%s wrote %d times, though a living leader renewed", id, n)
		}
	}
	must(t, leader.By.HandOver(t.Context(), ""))
	if next := r.Leader(leader.Token()); next.Token() > uint64(time.Now().UnixMicro()) {
		t.Errorf("term %d follows %d: a forged term counted", next.Token(), leader.Token())
	}
}

// counted counts the writes of one member.
type counted struct {
	*pgxstore.Store
	swaps *atomic.Int32
}

// CompareAndSwap counts the call.
func (c counted) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	c.swaps.Add(1)
	return c.Store.CompareAndSwap(ctx, key, prev, value)
}

// arrivals counts the pushes of the forged term.
func arrivals(t *testing.T, s *pgxstore.Store) *atomic.Int32 {
	t.Helper()
	var n atomic.Int32
	stop, err := s.Watch(t.Context(), "billing", func(e driver.Entry) {
		if r, err := record.Decode(e.Value); err == nil && r.Incarnation == "forged" && e.Unverified {
			n.Add(1)
		}
	})
	must(t, err)
	t.Cleanup(stop)
	return &n
}

// forgeries returns notifications that are well formed and false, and some that are malformed.
func forgeries(t *testing.T, now driver.Entry) []string {
	t.Helper()
	lie := func(change func(*record.Record)) string {
		r := decode(t, now)
		r.Seq += 1000
		r.Nonce = "0123456789abcdef"
		change(&r)
		value, err := record.Encode(r)
		must(t, err)
		return forge(now, value)
	}
	return []string{
		lie(func(r *record.Record) { r.Released = true }),
		lie(func(r *record.Record) { r.Released, r.Successor = true, "b" }),
		lie(func(r *record.Record) { r.Term += 1 << 39; r.LeaderID, r.Incarnation = "nobody", "forged" }),
		lie(func(r *record.Record) { r.Term = record.MaxTerm }),
		lie(func(*record.Record) {}),
		forge(now, now.Value), forge(now, nil), forge(now, []byte("no record")),
		"billing", "billing\n", "billing\nx\n-1\ny\nz", "", "another\nx\n1\ny\nz",
		"billing\n" + strings.Repeat("x", 7999-len("billing\n")),
	}
}

// forge returns a notification of a state of the election billing, with a matching seal.
func forge(now driver.Entry, value []byte) string {
	const key = "billing"
	_, era, _ := strings.Cut(string(now.Version), " ")
	random := []byte("sixteen bytes ..")
	seal := sha256.Sum256(fmt.Appendf(nil, "%s%s\x00%s", random, key, value))
	stamp := hex.EncodeToString(append(random, seal[:8]...))
	return strings.Join([]string{key, stamp, fmt.Sprint(now.Floor), era, base64.StdEncoding.EncodeToString(value)}, "\n")
}

func decode(t *testing.T, e driver.Entry) record.Record {
	t.Helper()
	r, err := record.Decode(e.Value)
	must(t, err)
	return r
}

// BenchmarkNotifications compares writes with and without a notification, by eight concurrent
// writers, each to its own key. PostgreSQL commits transactions that notify one at a time.
func BenchmarkNotifications(b *testing.B) {
	p := sqld.StartPostgres(b)
	for name, opts := range map[string][]sqlstore.Option{"without": nil, "with": {sqlstore.WithNotifications()}} {
		b.Run(name, func(b *testing.B) {
			db := p.Open(b, "postgres", "postgres")
			db.SetMaxIdleConns(8)
			s := open(b, db, sqlstore.Postgres(), opts...)
			var writers sync.WaitGroup
			var mu sync.Mutex
			var took figures.Dist
			began := time.Now()
			for i := range 8 {
				writers.Go(func() {
					key, version := fmt.Sprint(b.Name(), b.N, i), driver.Version("")
					for n := range b.N {
						sent := time.Now()
						v, err := s.CompareAndSwap(b.Context(), key, version, fmt.Appendf(make([]byte, 300), "%d", n))
						if err != nil {
							b.Error(err)
							return
						}
						version = v
						mu.Lock()
						took = append(took, time.Since(sent))
						mu.Unlock()
					}
				})
			}
			writers.Wait()
			took.Report(b, "write-")
			b.ReportMetric(float64(len(took))/time.Since(began).Seconds(), "writes/s")
		})
	}
}

// BenchmarkIdleWatch measures the processor time of this process while it watches one election, and
// while its leader renews: it also writes every 5 s, which the case without a watch shows alone.
func BenchmarkIdleWatch(b *testing.B) {
	for _, c := range []struct {
		name    string
		watches bool
		renews  bool
		opts    []sqlstore.Option
	}{
		{"renewals without a watch", false, true, nil},
		{"renewals and a watch", true, true, nil},
		{"a watch", true, false, nil},
		{"a watch that asks every 10 ms", true, false, []sqlstore.Option{inBubble}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := openPushing(b, filepath.Join(b.TempDir(), "elections.db"), c.opts...)
			version, err := s.CompareAndSwap(b.Context(), "k", "", make([]byte, 300))
			must(b, err)
			if c.watches {
				stop, err := s.Watch(b.Context(), "k", func(driver.Entry) {})
				must(b, err)
				defer stop()
				time.Sleep(2 * time.Second) // the looks after the start do not count
			}
			for b.Loop() {
				began, before := time.Now(), machine.CPU()
				for range 6 {
					if c.renews {
						version, err = s.CompareAndSwap(b.Context(), "k", version, make([]byte, 300))
						must(b, err)
					}
					time.Sleep(5 * time.Second)
				}
				b.ReportMetric(100*float64(machine.CPU()-before)/float64(time.Since(began)), "%-of-a-core")
			}
		})
	}
}
