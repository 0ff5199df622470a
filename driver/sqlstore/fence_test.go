package sqlstore

import "testing"

// A server that shuts down may have committed, while it waits for a standby to confirm.
func TestErrorsOfCommits(t *testing.T) {
	for _, c := range []struct {
		dialect Dialect
		code    string
		undone  bool
		why     string
	}{
		{Postgres(), "40001", true, "a serialization failure"},
		{Postgres(), "23503", true, "a deferred constraint"},
		{Postgres(), "P0001", true, "a deferred trigger"},
		{Postgres(), "25P03", true, "the session was idle for too long"},
		{Postgres(), "40003", false, "it says itself that it does not know"},
		{Postgres(), "57P01", false, "the server ends the session, perhaps after the commit"},
		{Postgres(), "08006", false, "the connection is lost"},
		{Postgres(), "58030", false, "an error of the disk"},
		{MySQL(), "1213", true, "a deadlock"},
		{MySQL(), "1205", true, "a lock that was not had in time"},
		{MySQL(), "1053", false, "the server shuts down"},
		{MySQL(), "1180", false, "an error within the commit"},
		{SQLite(), "5", true, "another connection reads"},
		{SQLite(), "10", false, "an error of the disk"},
	} {
		if got := c.dialect.fence.undone(c.code); got != c.undone {
			t.Errorf("%s %s (%s): rolled back %v, want %v", c.dialect.name, c.code, c.why, got, c.undone)
		}
	}
}
