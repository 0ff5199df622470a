//go:build integration

package sql

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/electiontest"
)

// TestRealPushingSQLite uses the system's reports of writes to the file, which no bubble can.
func TestRealPushingSQLite(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		open := func(t testing.TB) drivertest.Harness {
			file := filepath.Join(t.TempDir(), "elections.db")
			push := func() *sqlstore.SQLiteStore {
				s, err := sqlstore.NewSQLite(pool(t, file, "_pragma=journal_mode("+mode+")"))
				must(t, err)
				must(t, s.Create(t.Context()))
				return s
			}
			s := push()
			h := actions(pool(t, file, ""), s.Store, "?")
			h.Store, h.Peer, h.FloorTick = s, push(), time.Millisecond
			return h
		}
		if testing.Short() && mode != "WAL" {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			t.Run("conformance", func(t *testing.T) { drivertest.Run(t, open) })
			t.Run("elections", func(t *testing.T) { electiontest.Run(t, open) })
		})
	}
}
