package sqltable

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver/reread"
)

// connectWithin bounds connecting, since database/sql opens some connections for no call in
// particular. One that hangs would hold a place in the pool without end.
const connectWithin = 5 * time.Second

// openPostgres reads the variables and files that PostgreSQL's own tools read. Statements have no
// names, so that it works with a pooler that assigns sessions by transaction.
func (s *Place) openPostgres(o kind.Options) (*sql.DB, error) {
	cfg, err := s.postgres(o)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(beforePostgres(o, cfg, s.postgres))), nil
}

// listener returns the configuration of the connection for the pushes of PostgreSQL.
func (s *Place) listener(o kind.Options) (*pgx.ConnConfig, error) {
	cfg, err := s.postgres(o)
	if err != nil || s.Listen == "" {
		return cfg, err
	}
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	var others []*pgconn.FallbackConfig // with TLS or without, as sslmode permits
	for _, f := range cfg.Fallbacks {
		if f.Host == cfg.Host && f.Port == cfg.Port {
			others = append(others, &pgconn.FallbackConfig{Host: host, Port: uint16(number), TLSConfig: serverNamed(f.TLSConfig, host)})
		}
	}
	cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = host, uint16(number), serverNamed(cfg.TLSConfig, host), others
	return cfg, err
}

func serverNamed(c *tls.Config, host string) *tls.Config {
	if c != nil {
		c = c.Clone()
		c.ServerName = host
	}
	return c
}

func (s *Place) postgres(o kind.Options) (*pgx.ConnConfig, error) {
	raw := "postgres:" + s.URL
	place, query, _ := strings.Cut(raw, "?")
	values, _ := url.ParseQuery(query) // never fails: parse parsed it
	if strings.Contains(place, ",") && values.Get("target_session_attrs") == "" {
		values.Set("target_session_attrs", "read-write") // the primary of several servers
	}
	cfg, err := pgx.ParseConfig(place + "?" + values.Encode())
	if err != nil {
		return nil, fault.OfValue(fault.New("correct the URL, or the variables and files of PostgreSQL's tools; a URL is such as "+examplePostgres, "%w", withoutConnString(err)))
	}
	if values.Get("default_query_exec_mode") == "" {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectWithin
	}
	if cfg.RuntimeParams["application_name"] == "" && o.Client != "" {
		cfg.RuntimeParams["application_name"] = o.Client
	}
	return cfg, nil
}

// withoutConnString removes the URL from an error, which may hold a password.
func withoutConnString(err error) error {
	if _, reason, ok := kind.CutLast(err.Error(), "`: "); ok {
		return errors.New(reason)
	}
	return err
}

// openSQLite makes the file only if --create permits to make the table. The busy_timeout is less
// than a third of any lease of more than 3 s.
func (s *Place) openSQLite(o kind.Options) (*sql.DB, error) {
	mode := "rw"
	if o.Create {
		mode = "rwc"
	}
	file := (&url.URL{Path: s.URL}).EscapedPath()
	return sql.Open("sqlite", "file:"+file+"?mode="+mode+"&_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
}

func (s *Place) openMySQL(o kind.Options) (*sql.DB, error) {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // the default logger prints each lost connection
	connector, err := s.mysqlConnector(o)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// mysql reads the variables and the file that the client mysql reads, too.
func (s *Place) mysql() (*mysql.Config, error) {
	u, err := url.Parse("mysql:" + s.URL)
	if err != nil {
		return nil, fault.OfValue(fault.New("give a URL such as "+exampleMySQL+", with special characters of the password as %XX, such as %40 for @", "is not a valid URL"))
	}
	cfg := mysql.NewConfig()
	file := clientFile()
	password, given := u.User.Password()
	cfg.User = cmp.Or(u.User.Username(), file["user"], os.Getenv("USER"))
	cfg.Passwd = password
	if !given {
		cfg.Passwd = cmp.Or(os.Getenv("MYSQL_PWD"), file["password"])
	}
	cfg.Net, cfg.DBName = "tcp", strings.TrimPrefix(u.Path, "/")
	cfg.Addr = net.JoinHostPort(cmp.Or(u.Hostname(), file["host"], "127.0.0.1"), cmp.Or(u.Port(), file["port"], "3306"))
	if err := setTLS(cfg, u.Query(), file); err != nil {
		return nil, err
	}
	return cfg, nil
}

// setTLS checks the server's certificate if the URL has tls=true, or if the URL or the client's
// file names an authority or a certificate and the URL has no tls.
func setTLS(cfg *mysql.Config, given url.Values, file map[string]string) error {
	either := func(key string) string { return cmp.Or(given.Get(key), file[key]) }
	ca, cert, key := either("ssl-ca"), either("ssl-cert"), either("ssl-key")
	mode := given.Get("tls")
	if mode != "" && mode != "true" || ca == "" && cert == "" && key == "" {
		cfg.TLSConfig = cmp.Or(mode, "preferred")
		return nil
	}
	c, err := kind.TLSOfFiles("ssl-", ca, cert, key)
	if err != nil {
		return fault.OfValue(fault.New("ssl-ca, ssl-cert and ssl-key, in the URL or in ~/.my.cnf, name files in PEM; the last two go together", "%w", err))
	}
	cfg.TLS = c
	return nil
}

// clientFile returns the settings of the section client of ~/.my.cnf. Names have dashes, as in
// ssl-ca, also where the file has underscores.
func clientFile() map[string]string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(home, ".my.cnf"))
	if err != nil {
		return nil
	}
	return parseClientFile(string(text))
}

func parseClientFile(text string) map[string]string {
	settings, section := map[string]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
		}
		if key, value, ok := strings.Cut(line, "="); ok && section == "client" {
			name := strings.ReplaceAll(strings.TrimSpace(key), "_", "-")
			settings[name] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return settings
}

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
