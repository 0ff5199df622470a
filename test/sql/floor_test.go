package sql

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
)

// survivesFarFloor checks that an election goes on after a floor that leaves no term below 2^53, as
// from an edit by hand or from a renewal while the server's clock showed the year 2300. Tokens go
// on from the record, one lease passes before the next leader, and an alarm says why.
func survivesFarFloor(t *testing.T, db *sql.DB, open func() driver.Store, lease time.Duration, floor string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	short, stop := context.WithCancel(ctx)
	first := joins(t, short, open(), tenure.Config{ID: "a", Lease: lease, Clock: clock.Standard{}})
	old := <-first.leads
	stop()
	<-first.gone
	run(t, db, "UPDATE tenure SET floor = "+floor)
	began := time.Now()
	alarms := make(chan error, 100)
	next := joins(t, ctx, open(), tenure.Config{ID: "b", Lease: lease, Clock: clock.Standard{}, OnEvent: func(e tenure.Event) {
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
	if cause := <-alarms; cause == nil || !strings.Contains(cause.Error(), "not credible") || errors.Is(cause, tenure.ErrMalformed) {
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
