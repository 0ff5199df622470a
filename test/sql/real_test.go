//go:build integration

package sql

import (
	"database/sql"
	"os"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/electiontest"
)

func TestMy(t *testing.T) {
	h := func(t testing.TB) drivertest.Harness {
		db, err := sql.Open("mysql", os.Getenv("MYDSN"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		s := open(t, db, sqlstore.MySQL())
		h := actions(db, s, "?")
		h.Peer = open(t, db, sqlstore.MySQL())
		h.FloorTick = time.Microsecond
		return h
	}
	drivertest.Run(t, h)
	electiontest.Run(t, h)
}

func TestPG(t *testing.T) {
	h := func(t testing.TB) drivertest.Harness {
		db, err := sql.Open("pgx", os.Getenv("PGDSN"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		s := open(t, db, sqlstore.Postgres())
		h := actions(db, s, "$1")
		h.Peer = open(t, db, sqlstore.Postgres())
		h.FloorTick = time.Microsecond
		return h
	}
	drivertest.Run(t, h)
	electiontest.Run(t, h)
}
