package fenced_test

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// table is one row that leaders write to.
func table(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`
		CREATE TABLE jobs (id TEXT PRIMARY KEY, state TEXT NOT NULL, token INTEGER NOT NULL DEFAULT 0);
		INSERT INTO jobs (id, state) VALUES ('nightly', 'new')`)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// write reports whether the leader with that token was not deposed.
func write(t *testing.T, db *sql.DB, token uint64, state string) bool {
	t.Helper()
	result, err := db.Exec(`UPDATE jobs SET state = $1, token = $2 WHERE id = 'nightly' AND token <= $2`, state, token)
	if err != nil {
		t.Fatal(err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func campaign(t *testing.T, s driver.Store, id string) *tenure.Term {
	t.Helper()
	e, err := tenure.New(s, "nightly", tenure.Config{ID: id, Clock: clock.Standard{}})
	if err != nil {
		t.Fatal(err)
	}
	term, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Resign(context.Background()) })
	return term
}

// TestLateWriteIsRefused: the old leader freezes after a successful check. When it acts, another
// leader has already acted.
func TestLateWriteIsRefused(t *testing.T) { synctest.Test(t, lateWriteIsRefused) }

func lateWriteIsRefused(t *testing.T) {
	db, store := table(t), memory.New()
	cuttable := faults.New(store, 0, faults.Plan{})
	old := campaign(t, cuttable, "old")
	if !write(t, db, old.Token(), "begun") || !write(t, db, old.Token(), "half done") {
		t.Fatal("the only leader was refused")
	}

	cuttable.Partition()
	next := campaign(t, store, "next")
	if next.Token() <= old.Token() {
		t.Fatalf("token %d follows token %d", next.Token(), old.Token())
	}
	if !write(t, db, next.Token(), "done") {
		t.Error("the new leader was refused")
	}
	if write(t, db, old.Token(), "half done") {
		t.Error("the old leader's late write was accepted")
	}
	if !write(t, db, next.Token(), "checked") {
		t.Error("the new leader was refused after an attempt of the old one")
	}

	var state string
	if err := db.QueryRow(`SELECT state FROM jobs WHERE id = 'nightly'`).Scan(&state); err != nil {
		t.Fatal(err)
	}
	if state != "checked" {
		t.Errorf("the job is %q", state)
	}
}
