package sqltable

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver/reread"
)

var (
	errMoved      = errors.New("the files name another server or database now, or another kind of TLS; start this process again to use it")
	errNoPassword = errors.New("the files hold no password any more; put the present one there")
)

// checkPassword returns an error if a password has vanished: a file is gone or half-written.
func checkPassword(first, now string) error {
	if first != "" && now == "" {
		return errNoPassword
	}
	return nil
}

// beforePostgres returns a function that gives a new connection the user, the password and the
// certificates that the files hold now. All else stays as it was first.
func beforePostgres(
	o kind.Options, first *pgx.ConnConfig, read func(kind.Options) (*pgx.ConnConfig, error),
) func(context.Context, *pgx.ConnConfig) error {
	source := reread.New(first, func(context.Context) (*pgx.ConnConfig, error) {
		now, err := read(o)
		switch {
		case err != nil:
			return nil, err
		case placeOf(now) != placeOf(first):
			return nil, errMoved
		}
		return now, checkPassword(first.Password, now.Password)
	}, o.Stale)
	return func(ctx context.Context, c *pgx.ConnConfig) error {
		now := source.Get(ctx)
		c.User, c.Password, c.TLSConfig, c.Fallbacks = now.User, now.Password, now.TLSConfig, now.Fallbacks
		return nil
	}
}

// placeOf returns the database and the servers, each with its kind of TLS: a file that is missing
// must not turn off the check of certificates.
func placeOf(c *pgx.ConnConfig) string {
	kind := func(c *tls.Config) string {
		if c == nil {
			return "none"
		}
		return fmt.Sprint(c.InsecureSkipVerify, c.VerifyPeerCertificate != nil)
	}
	place := fmt.Sprintf("%q %q %d %s", c.Database, c.Host, c.Port, kind(c.TLSConfig))
	for _, f := range c.Fallbacks {
		place += fmt.Sprintf(" %q %d %s", f.Host, f.Port, kind(f.TLSConfig))
	}
	return place
}

// mysqlConnector connects with the user, the password and the certificates that the files hold now.
// It bounds the whole of connecting; mysql.Config.Timeout bounds only the dial.
type mysqlConnector struct {
	driver.Connector // the first one
	source           *reread.Source[driver.Connector]
}

// Connect connects within connectWithin.
func (c mysqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	return c.source.Get(ctx).Connect(ctx)
}

// mysqlConnector reads the files for the first time. Its errors have hints.
func (s *Place) mysqlConnector(o kind.Options) (driver.Connector, error) {
	cfg, err := s.mysql()
	if err != nil {
		return nil, err
	}
	first, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fault.OfValue(fault.New("give tls=true, tls=false, tls=skip-verify or tls=preferred in a URL such as "+exampleMySQL, "parameter tls: %w", err))
	}
	read := func(context.Context) (driver.Connector, error) {
		now, err := s.mysql()
		switch {
		case err != nil:
			return nil, err
		case now.Addr != cfg.Addr, now.TLSConfig != cfg.TLSConfig:
			return nil, errMoved
		}
		if err := checkPassword(cfg.Passwd, now.Passwd); err != nil {
			return nil, err
		}
		return mysql.NewConnector(now)
	}
	return mysqlConnector{first, reread.New(first, read, o.Stale)}, nil
}
