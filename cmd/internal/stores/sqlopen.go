package stores

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	_ "modernc.org/sqlite" // the driver sqlite
)

// connectWithin bounds connections that database/sql opens for no call in particular. One that
// hangs would hold a place in the pool for ever.
const connectWithin = 5 * time.Second

// openPostgres reads the variables and files that PostgreSQL's own tools read. Statements have no
// names, so that a pooler that gives sessions away by transaction may be in between.
func (s *SQL) openPostgres(o Options) (*sql.DB, error) {
	cfg, err := s.postgres(o)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*cfg), nil
}

// listener is the configuration of the connection that PostgreSQL pushes to.
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
	if cfg.TLSConfig != nil {
		cfg.TLSConfig.ServerName = host
	}
	cfg.Host, cfg.Port, cfg.Fallbacks = host, uint16(number), nil
	return cfg, err
}

func (s *SQL) postgres(o Options) (*pgx.ConnConfig, error) {
	raw := "postgres:" + s.URL
	place, query, _ := strings.Cut(raw, "?")
	values, _ := url.ParseQuery(query) // it was parsed before
	if strings.Contains(place, ",") && values.Get("target_session_attrs") == "" {
		values.Set("target_session_attrs", "read-write") // of several servers the primary
	}
	cfg, err := pgx.ParseConfig(place + "?" + values.Encode())
	if err != nil {
		return nil, fault.New("give a URL such as "+shapePostgres, "%w", err)
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

// openMySQL reads the variables and the file that the client mysql reads.
func (s *SQL) openMySQL(Options) (*sql.DB, error) {
	u, err := url.Parse("mysql:" + s.URL)
	if err != nil {
		return nil, fault.New("give a URL such as "+shapeMySQL+", with special characters of the password as in %40", "is not a valid URL")
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it would print each lost connection
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
	cfg.TLSConfig = cmp.Or(u.Query().Get("tls"), "preferred")
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fault.New("tls is true, false, skip-verify or preferred; a URL is such as "+shapeMySQL, "%w", err)
	}
	return sql.OpenDB(promptConnector{connector}), nil
}

// promptConnector bounds the whole of connecting. Config.Timeout bounds only the dial.
type promptConnector struct{ driver.Connector }

// Connect connects within connectWithin.
func (c promptConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	return c.Connector.Connect(ctx)
}

// clientFile returns the settings of the section client of ~/.my.cnf.
func clientFile() map[string]string {
	settings := map[string]string{}
	home, err := os.UserHomeDir()
	if err != nil {
		return settings
	}
	text, err := os.ReadFile(filepath.Join(home, ".my.cnf"))
	if err != nil {
		return settings
	}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
		}
		if key, value, ok := strings.Cut(line, "="); ok && section == "client" {
			settings[strings.TrimSpace(key)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return settings
}

// openSQLite makes the file only where it may make the table.
func (s *SQL) openSQLite(o Options) (*sql.DB, error) {
	mode := "rw"
	if o.Create {
		mode = "rwc"
	}
	file := (&url.URL{Path: s.URL}).EscapedPath()
	return sql.Open("sqlite", "file:"+file+"?mode="+mode+"&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
}
