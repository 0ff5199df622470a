//go:build integration

package sql

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// site is a database on its own server.
type site struct {
	sqld.Site
	name string
}

// eachSite runs a test on each database server, and behind a pooler.
func eachSite(t *testing.T, test func(t *testing.T, s site)) {
	for name, start := range map[string]func(testing.TB) sqld.Site{
		"postgres": sqld.PostgresSite, "pgbouncer": sqld.PgBouncerSite, "mariadb": mariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, site{start(t), name})
		})
	}
}

func mariaDB(t testing.TB) sqld.Site { return sqld.MariaDBSite(t) }

// TestRealConformanceWithSettings: users share the pools of their services, with their settings.
func TestRealConformanceWithSettings(t *testing.T) {
	settings := map[string][]string{
		"postgres": {
			"?default_transaction_isolation=serializable", "?default_transaction_isolation=repeatable%20read",
			"?default_query_exec_mode=simple_protocol", "?default_query_exec_mode=exec", "?timezone=Asia/Kolkata",
		},
		"mariadb": {
			"?tx_isolation=%27SERIALIZABLE%27", "?sql_mode=%27ANSI%27", "?clientFoundRows=true&interpolateParams=true",
			"?time_zone=%27%2B05:00%27",
		},
	}
	eachSite(t, func(t *testing.T, s site) {
		for _, query := range settings[s.name] {
			t.Run(query, func(t *testing.T) {
				drivertest.Run(t, func(t testing.TB) drivertest.Harness {
					db := sqld.Open(t, s.Driver, s.DSN+query)
					h := actions(db, open(t, db, s.Dialect), s.Placeholder)
					h.FloorTick, h.Rounds = time.Microsecond, 5
					return h
				})
			})
		}
	})
}

func TestRealFarFloorEndsNoElection(t *testing.T) {
	eachSite(t, func(t *testing.T, s site) {
		db := s.Pool(t)
		open(t, db, s.Dialect)
		for _, floor := range farFloors {
			run(t, db, "DELETE FROM tenure")
			survivesFarFloor(t, db, func() driver.Store { return over(t, s.Pool(t), s.Dialect) }, time.Second, floor)
		}
	})
}
