package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
)

// These types have the shapes of the drivers' errors.
type (
	stateError  struct{ state, text string } // pgx, lib/pq
	numberError struct {                     // go-sql-driver/mysql
		Number  uint16
		Message string
	}
	resultError struct { // modernc.org/sqlite
		result int
		text   string
	}
	result    int
	codeError struct { // mattn/go-sqlite3
		Code result
		text string
	}
)

func (e *stateError) Error() string    { return e.text }
func (e *stateError) SQLState() string { return e.state }
func (e *numberError) Error() string   { return e.Message }
func (e *resultError) Error() string   { return e.text }
func (e *resultError) Code() int       { return e.result }
func (e codeError) Error() string      { return e.text }

func TestCodeOfDrivers(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&stateError{"42P01", ""}, "42P01"},
		{&numberError{1146, ""}, "1146"},
		{&resultError{8, ""}, "8"},
		{&resultError{8 | 5<<8, ""}, "8"}, // an extended code
		{codeError{8, ""}, "8"},
		{&codeError{8 | 5<<8, ""}, "8"},
		{errors.New("refused"), ""},
		{struct{ error }{errors.New("a struct")}, ""},
	} {
		for _, err := range []error{c.err, fmt.Errorf("connect: %w", c.err)} {
			if got := code(err); got != c.want {
				t.Errorf("%#v: got %q, want %q", err, got, c.want)
			}
		}
	}
}

// TestErrorNamesTheRemedy: the remedy uses the terms of the database, and follows its own text.
func TestErrorNamesTheRemedy(t *testing.T) {
	state := func(code, text string) error { return &stateError{code, text} }
	number := func(n uint16) error { return &numberError{n, "server's words"} }
	lite := func(code int, text string) error { return &resultError{code, text} }
	postgres, mysql, sqlite := Postgres(), MySQL(), SQLite()
	for _, c := range []struct {
		dialect  Dialect
		err      error
		sentinel error // nil: the outcome is unknown
		want     string
	}{
		{postgres, state("40001", "could not serialize"), driver.ErrConflict, ""},
		{postgres, state("40P01", "deadlock"), driver.ErrConflict, ""},
		{postgres, state("42501", "permission denied"), driver.ErrDenied, "USAGE on the schema, and SELECT on the table"},
		{postgres, state("28P01", "wrong password"), driver.ErrDenied, "PGPASSFILE"},
		{postgres, state("28000", "no entry"), driver.ErrDenied, "pg_hba.conf"},
		{postgres, state("08P01", "SASL authentication failed"), driver.ErrDenied, "PGPASSWORD"},
		{postgres, state("08P01", "protocol violation"), nil, ""},
		{postgres, errors.New("tls error: server refused TLS connection"), nil, "sslmode=prefer"},
		{postgres, state("3D000", "no database"), nil, "CREATE DATABASE"},
		{postgres, state("42P01", "no relation"), nil, `CREATE TABLE IF NOT EXISTS "tenure"`},
		{postgres, state("3F000", "no schema"), nil, `CREATE TABLE IF NOT EXISTS "tenure"`},
		{postgres, state("42703", "no column"), nil, "other columns"},
		{postgres, state("42P10", "no unique constraint"), nil, "other columns"},
		{postgres, state("25006", "read-only transaction"), nil, "connect to the primary"},
		{postgres, state("55000", "recovery is in progress"), nil, "connect to the primary"},
		{postgres, state("42883", "no function"), nil, "sqlstore.WithEra"},
		{postgres, state("0A000", "cached plan must not change result type"), nil, ""},
		{postgres, state("57P01", "terminated"), nil, ""},
		{postgres, state("53100", "disk full"), nil, ""},
		{mysql, number(1062), driver.ErrConflict, ""},
		{mysql, number(1213), driver.ErrConflict, ""},
		{mysql, number(1205), driver.ErrConflict, ""},
		{mysql, number(1142), driver.ErrDenied, "SELECT on the table, to a candidate INSERT and UPDATE"},
		{mysql, number(1045), driver.ErrDenied, "REQUIRE SSL"},
		{mysql, number(3159), driver.ErrDenied, "require_secure_transport"},
		{mysql, errors.New("TLS requested but server does not support TLS"), nil, "ssl_cert"},
		{mysql, number(1046), nil, "name the database"},
		{mysql, number(1049), nil, "CREATE DATABASE"},
		{mysql, number(1146), nil, "CREATE TABLE IF NOT EXISTS `tenure`"},
		{mysql, number(1054), nil, "other columns"},
		{mysql, number(1406), nil, "other columns"},
		{mysql, number(1290), nil, "connect to the primary"},
		{mysql, number(1193), nil, "sqlstore.WithEra"},
		{mysql, number(1317), nil, ""},
		{sqlite, lite(3, "access permission denied"), driver.ErrDenied, "let this user"},
		{sqlite, lite(14, "unable to open database file"), nil, "check the path"},
		{sqlite, lite(26, "file is not a database"), nil, "check the path"},
		{sqlite, lite(1, "no such table: tenure"), nil, `CREATE TABLE IF NOT EXISTS "tenure"`},
		{sqlite, lite(1, "no such column: t.value"), nil, "other columns"},
		{sqlite, lite(1, "ON CONFLICT clause does not match"), nil, "other columns"},
		{sqlite, lite(1|2<<8, "missing collating sequence"), nil, ""},
		{sqlite, lite(8, "readonly database"), nil, "mode=ro"},
		{sqlite, lite(5, "database is locked"), nil, ""},
	} {
		got := newStore(t, &sql.DB{}, c.dialect).explain(c.err)
		for _, sentinel := range []error{driver.ErrConflict, driver.ErrDenied} {
			if errors.Is(got, sentinel) != errors.Is(c.sentinel, sentinel) {
				t.Errorf("%s: %v: got %v, want one that wraps %v", c.dialect.name, c.err, got, c.sentinel)
			}
		}
		if !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: %v: got %v, want one with %q", c.dialect.name, c.err, got, c.want)
		}
		if unexplained := got.Error() == c.err.Error(); unexplained != (c.sentinel == nil && c.want == "") {
			t.Errorf("%s: %v: got %v", c.dialect.name, c.err, got)
		}
	}
}

func TestWithCode(t *testing.T) {
	s := newStore(t, &sql.DB{}, Postgres(), WithCode(func(err error) string { return strings.TrimPrefix(err.Error(), "sqlstate ") }))
	if err := s.explain(errors.New("sqlstate 42501")); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("got %v, want one that wraps driver.ErrDenied", err)
	}
}
