// Package sql tests elections in databases: on SQLite within the process, and with the build tag
// integration on real servers.
package sql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/record"
	"modernc.org/sqlite"
)

// The clock of SQLite is the one of this process, which is virtual in a bubble.
func init() {
	const unixEpoch = 2440587.5
	sqlite.MustRegisterScalarFunction("julianday", 1, func(*sqlite.FunctionContext, []sqldriver.Value) (sqldriver.Value, error) {
		return unixEpoch + float64(time.Now().UnixMicro())/float64(24*time.Hour/time.Microsecond), nil
	})
}

// openSQLite opens a file as another process would.
func openSQLite(t testing.TB, file string, opts ...sqlstore.Option) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db := poolOfSQLite(t, file)
	return db, open(t, db, sqlstore.SQLite(), opts...)
}

func poolOfSQLite(t testing.TB, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// open returns a store whose table exists.
func open(t testing.TB, db *sql.DB, dialect sqlstore.Dialect, opts ...sqlstore.Option) *sqlstore.Store {
	t.Helper()
	s := over(t, db, dialect, opts...)
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// over returns a store whose table may exist.
func over(t testing.TB, db *sql.DB, dialect sqlstore.Dialect, opts ...sqlstore.Option) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.New(db, dialect, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// actions are those of an operator on the table.
func actions(db *sql.DB, s *sqlstore.Store, placeholder string) drivertest.Harness {
	remove := func(ctx context.Context, key string) error {
		_, err := db.ExecContext(ctx, "DELETE FROM tenure WHERE name = "+placeholder, key)
		return err
	}
	return drivertest.Harness{
		Store: s, Delete: remove, Purge: remove,
		Recreate: func(ctx context.Context) error {
			if _, err := db.ExecContext(ctx, "DROP TABLE tenure"); err != nil {
				return err
			}
			return s.Create(ctx)
		},
	}
}

func sqliteHarness(t testing.TB) drivertest.Harness {
	file := filepath.Join(t.TempDir(), "elections.db")
	db, s := openSQLite(t, file)
	h := actions(db, s, "?")
	_, h.Peer = openSQLite(t, file)
	h.FloorTick = time.Millisecond
	return h
}

func TestSQLiteConformance(t *testing.T) { drivertest.RunInBubbles(t, sqliteHarness) }

func TestSQLiteElections(t *testing.T) { electiontest.RunInBubbles(t, sqliteHarness) }

// must stops a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// member is one candidate.
type member struct {
	*tenure.Election
	leads chan *tenure.Term
	gone  chan struct{} // closed when it has left
}

// joins starts a candidate that leads until the test ends.
func joins(t *testing.T, ctx context.Context, s driver.Store, cfg tenure.Config) *member {
	t.Helper()
	e, err := tenure.New(s, "billing", cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{e, make(chan *tenure.Term, 1), make(chan struct{})}
	go func() {
		defer close(m.gone)
		_ = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			m.leads <- term
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() { <-m.gone })
	return m
}

// survivesFarFloor checks that an election goes on after a floor that leaves no term below 2^53, as
// from an edit by hand or from a renewal while the server's clock showed the year 2300. Tokens go
// on from the record, one lease passes before the next leader, and an alarm says why.
func survivesFarFloor(t *testing.T, db *sql.DB, open func() driver.Store, lease time.Duration, floor string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	short, stop := context.WithCancel(ctx)
	first := joins(t, short, open(), tenure.Config{ID: "a", Lease: lease})
	old := <-first.leads
	stop()
	<-first.gone
	run(t, db, "UPDATE tenure SET floor = "+floor)
	began := time.Now()
	alarms := make(chan error, 100)
	next := joins(t, ctx, open(), tenure.Config{ID: "b", Lease: lease, OnEvent: func(e tenure.Event) {
		if e.Kind == tenure.EventAlarm {
			alarms <- e.Cause
		}
	}})
	term := <-next.leads
	if term.Token() <= old.Token() || term.Token() >= 1<<52 {
		t.Errorf("floor %s: token %d after %d", floor, term.Token(), old.Token())
	}
	if waited := time.Since(began); waited < lease {
		t.Errorf("floor %s: the next leader starts after %v, before a lease of %v", floor, waited, lease)
	}
	if cause := <-alarms; cause == nil || !strings.Contains(cause.Error(), "not credible") || errors.Is(cause, &tenure.StoreError{Kind: driver.Malformed}) {
		t.Errorf("floor %s: the alarm is %v", floor, cause)
	}
	var now int64
	if err := db.QueryRowContext(ctx, "SELECT floor FROM tenure").Scan(&now); err != nil || now >= 1<<52 {
		t.Errorf("floor %s: the row has floor %d, %v after the next claim", floor, now, err)
	}
}

var farFloors = []string{"9007199254740991", "9007199254740990", "10400000000000000", "9223372036854775807"}

func TestFarFloorEndsNoElection(t *testing.T) {
	for _, floor := range farFloors {
		synctest.Test(t, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "elections.db")
			db, _ := openSQLite(t, file)
			open := func() driver.Store { _, s := openSQLite(t, file); return s }
			survivesFarFloor(t, db, open, 15*time.Second, floor)
		})
	}
}

// TestTermsOfAWrongClockStay: a server's clock that showed the year 2200 for a while has put terms
// there. Fences have seen them, so the election goes on above them, and above the floor only.
func TestTermsOfAWrongClockStay(t *testing.T) {
	const term = 7_258_118_400_000_001 // 2200-01-01 in microseconds
	for _, inRecord := range []uint64{term, 1_800_000_000_000_000} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			file := filepath.Join(t.TempDir(), "elections.db")
			db, s := openSQLite(t, file)
			value, err := record.Encode(record.Record{LeaderID: "x", Incarnation: "0123456789abcdef", Term: inRecord, Seq: 3,
				Released: true, Lease: 15 * time.Second, Nonce: "0123456789abcdef"})
			must(t, err)
			_, err = s.CompareAndSwap(ctx, "billing", "", value)
			must(t, err)
			run(t, db, fmt.Sprint("UPDATE tenure SET floor = ", term+9))
			last := inRecord
			for id := range 3 {
				short, stop := context.WithCancel(ctx)
				m := joins(t, short, s, tenure.Config{ID: fmt.Sprint(id), Lease: 15 * time.Second})
				token := (<-m.leads).Token()
				if token <= last || (token > term) != (inRecord == term) {
					t.Errorf("token %d after %d, with %d in the first record", token, last, inRecord)
				}
				last = token
				stop()
				<-m.gone
			}
		})
	}
}

// severed is a store that can become unreachable.
type severed struct {
	driver.Store
	on atomic.Bool
}

var errSevered = errors.New("cut off")

// CompareAndSwap fails once the store is severed.
func (s *severed) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if s.on.Load() {
		return "", errSevered
	}
	return s.Store.CompareAndSwap(ctx, key, prev, value)
}

// Read fails once the store is severed.
func (s *severed) Read(ctx context.Context, key string) (driver.Entry, error) {
	if s.on.Load() {
		return driver.Entry{}, errSevered
	}
	return s.Store.Read(ctx, key)
}

// TestManualReleaseIsWaitedOut: an operator edits the row to show a release of the leader. The
// leader is cut off and does not notice. There must not be two leaders.
func TestManualReleaseIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		file := filepath.Join(t.TempDir(), "elections.db")
		db, s := openSQLite(t, file)
		away := &severed{Store: s}
		const lease = 15 * time.Second
		old := <-joins(t, ctx, away, tenure.Config{ID: "a", Lease: lease}).leads
		_, other := openSQLite(t, file)
		// It reads the edited row soon.
		often := tenure.Tuning{Poll: time.Second, PollStable: time.Second}
		next := joins(t, ctx, other, tenure.Config{ID: "b", Lease: lease, Tuning: often})
		if _, err := next.Wait(ctx, func(s tenure.Status) bool { return s.Leader.ID == "a" }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lease) // the follower knows the present record
		away.on.Store(true)
		const edit = `UPDATE tenure SET value = CAST(replace(CAST(value AS TEXT), '"nonce"', '"released":true,"nonce"') AS BLOB)`
		if _, err := db.ExecContext(ctx, edit); err != nil {
			t.Fatal(err)
		}
		if <-next.leads; old.Err() == nil {
			t.Error("two leaders: the one that is cut off, and one that believed the edited row")
		}
	})
}
