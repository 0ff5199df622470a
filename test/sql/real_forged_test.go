//go:build integration

package sql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/reign"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

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
