package stores

import (
	"crypto/tls"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	_ "modernc.org/sqlite" // the driver sqlite
)

// connectWithin bounds connecting, since database/sql opens some connections for no call in
// particular. One that hangs would hold a place in the pool without end.
const connectWithin = 5 * time.Second

// openPostgres reads the variables and files that PostgreSQL's own tools read. Statements have no
// names, so that it works with a pooler that assigns sessions by transaction.
func (s *SQL) openPostgres(o Options) (*sql.DB, error) {
	cfg, err := s.postgres(o)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(o.beforePostgres(cfg, s.postgres))), nil
}

// listener returns the configuration of the connection for the pushes of PostgreSQL.
func (s *SQL) listener(o Options) (*pgx.ConnConfig, error) {
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

func (s *SQL) postgres(o Options) (*pgx.ConnConfig, error) {
	raw := "postgres:" + s.URL
	place, query, _ := strings.Cut(raw, "?")
	values, _ := url.ParseQuery(query) // never fails: parseSQL parsed it
	if strings.Contains(place, ",") && values.Get("target_session_attrs") == "" {
		values.Set("target_session_attrs", "read-write") // the primary of several servers
	}
	cfg, err := pgx.ParseConfig(place + "?" + values.Encode())
	if err != nil {
		return nil, fault.OfValue(fault.New("correct the URL, or the variables and files of PostgreSQL's tools; a URL is such as "+shapePostgres, "%w", withoutConnString(err)))
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
	if _, reason, ok := cutLast(err.Error(), "`: "); ok {
		return errors.New(reason)
	}
	return err
}

// openSQLite makes the file only if --create permits to make the table. The busy_timeout is less
// than a third of any lease of more than 3 s.
func (s *SQL) openSQLite(o Options) (*sql.DB, error) {
	mode := "rw"
	if o.Create {
		mode = "rwc"
	}
	file := (&url.URL{Path: s.URL}).EscapedPath()
	return sql.Open("sqlite", "file:"+file+"?mode="+mode+"&_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
}
