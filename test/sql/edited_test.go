package sql

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
)

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
		old := <-joins(t, ctx, away, tenure.Config{ID: "a", Lease: lease, Clock: clock.Standard{}}).leads
		_, other := openSQLite(t, file)
		// It reads the edited row soon.
		often := tenure.Tuning{Poll: time.Second, PollStable: time.Second}
		next := joins(t, ctx, other, tenure.Config{ID: "b", Lease: lease, Clock: clock.Standard{}, Tuning: often})
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
