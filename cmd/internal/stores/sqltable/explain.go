package sqltable

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"modernc.org/sqlite"
)

// Explain returns the error and the hint for a table that cannot be used.
func (s *Place) Explain(err error) *fault.Error {
	d := s.database()
	switch {
	case errors.Is(err, sqlstore.ErrNoTable):
		return fault.New(kind.MadeBy(s.createStatement()), "there is no table %s in this database: %w", s.table(), theServers(err))
	case errors.Is(err, driver.ErrDenied):
		return fault.New("docs/sql.md has the rights of a candidate and of an observer; passwords come from the URL, PGPASSFILE, "+
			"PGPASSWORD, MYSQL_PWD or ~/.my.cnf; tenure help stores has the parameters for TLS and certificates", "%w: %w", driver.ErrDenied, theServers(err))
	case s.Scheme == "sqlite" && strings.Contains(err.Error(), "unable to open"):
		return fault.New("name a file in a directory that exists and that this user can write to; --create, which the commands that hold elections have, makes the file", "cannot be opened: %w", theServers(err))
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fault.New("give the authority's file as "+d.authority+"; the URL's host must be one of the certificate's names",
			"the server's certificate is not accepted: %w", theServers(err))
	case offersNoTLS(err):
		return fault.New("set "+d.encrypt+", which encrypts only if the server can", "the server offers no TLS, but the settings require it")
	case isMissing(err):
		return fault.New("check the database's name in the URL, or make it with CREATE DATABASE", "there is no such database: %w", theServers(err))
	case kind.Away(err), passes(err):
		return fault.Passing("check host and port in the URL, and that the server runs and accepts connections", "%s does not answer: %w", d.name, theServers(err))
	}
	return fault.New("", "%w", err)
}

func (s *Place) table() string {
	if s.Table == "" {
		return "tenure"
	}
	return s.Table
}

// createStatement returns the statement that makes the table, on one line.
func (s *Place) createStatement() string {
	b, err := s.Limits()
	store, ok := b.(*sqlstore.Store)
	if err != nil || !ok {
		return "CREATE TABLE " + s.table()
	}
	return strings.Join(strings.Fields(store.CreateStatement()), " ")
}

// offersNoTLS reports whether all servers that were asked lack TLS.
func offersNoTLS(err error) bool {
	connect, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return errors.Is(err, mysql.ErrNoTLS)
	}
	for line := range strings.Lines(connect.Unwrap().Error()) { // one for each address
		if !strings.HasSuffix(strings.TrimSpace(line), "server refused TLS connection") {
			return false
		}
	}
	return true
}

// isMissing reports whether the server has no database of this name.
func isMissing(err error) bool {
	var postgres *pgconn.PgError
	var my *mysql.MySQLError
	return errors.As(err, &postgres) && postgres.Code == "3D000" || errors.As(err, &my) && my.Number == 1049
}

// passes reports whether the database refuses all clients for a while.
func passes(err error) bool {
	var postgres *pgconn.PgError
	var my *mysql.MySQLError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &postgres):
		class := postgres.Code[:min(2, len(postgres.Code))]
		return class == "57" || class == "53" || class == "08"
	case errors.As(err, &my):
		return my.Number == 1040 || my.Number == 1053
	case errors.As(err, &lite):
		return lite.Code()&0xff == 5 // busy
	}
	var connect *pgconn.ConnectError
	return errors.Is(err, mysql.ErrInvalidConn) || errors.As(err, &connect)
}

// theServers returns the database's own error, without the text around it.
func theServers(err error) error {
	var postgres *pgconn.PgError
	var my *mysql.MySQLError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &postgres):
		return errors.New(postgres.Message)
	case errors.As(err, &my):
		return my
	case errors.As(err, &lite):
		return lite
	}
	// pgx has one line for each address that it has tried.
	cause := kind.Root(err)
	if i := strings.LastIndexByte(strings.TrimSpace(cause.Error()), '\n'); i >= 0 {
		return errors.New(strings.TrimSpace(cause.Error()[i:]))
	}
	return cause
}
