// Package sqltable describes stores in tables of databases.
package sqltable

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

// Place is a table of a database.
type Place struct {
	// Scheme says which database it is: postgres, mysql or sqlite.
	Scheme string `json:"scheme"`
	// URL is the rest of the URL, without the parameters below, perhaps with credentials. For
	// SQLite it is the file.
	URL   string `json:"url"`
	Table string `json:"table,omitempty"`
	// Listen is the address for the pushes of PostgreSQL, if it differs from that of the URL. Push
	// is "off" or empty.
	Listen string `json:"listen,omitempty"`
	Push   string `json:"push,omitempty"`
	// Pristine: no living member has used an earlier file of this path, so the first election in a
	// new file of SQLite need not wait.
	Pristine bool `json:"pristine,omitempty"`
}

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:       "sql",
		Container: "table",
		Schemes: []kind.Scheme{
			{Name: "postgres", Aliases: []string{"postgresql"}, Form: "postgres://USER@HOST/DATABASE"},
			{Name: "mysql", Aliases: []string{"mariadb"}, Form: "mysql://..."},
			{Name: "sqlite", Form: "sqlite:FILE", Opaque: true},
		},
		About: `Databases, --store postgres://[USER[:PASSWORD]@]HOST[:PORT],.../DATABASE[?...], mysql://... (also
for MariaDB) and sqlite:FILE, take these parameters`,
		Parameters: []kind.Parameter{
			{Name: "table", Value: "NAME", Meaning: "the table, or SCHEMA.TABLE; by default tenure, which --create makes"},
			{Name: "pristine", Value: "true",
				Meaning: "for sqlite: you know that no candidate used an earlier file of this path: so none has to wait for one lease in a new one"},
			{Name: "push", Value: "off", Meaning: "for postgres: poll, instead of listening to notifications"},
			{Name: "listen", Value: "HOST:PORT", Meaning: "for postgres: the server's own address, if the URL leads to a pooler"},
			{Name: "tls", Value: "MODE", Meaning: "for mysql: true, false, skip-verify or preferred, which is the default"},
			{Name: "ssl-ca", Value: "FILE", Meaning: "for mysql: CA of the server's certificate, in PEM, for tls=true"},
			{Name: "ssl-cert", Value: "FILE", Meaning: "for mysql: the client's own certificate, with ssl-key=FILE"},
		},
		Notes: `PostgreSQL also takes the parameters of its own tools, such as sslmode, service and
target_session_attrs, and their variables and files: PGPASSFILE, PGPASSWORD, PGSERVICEFILE. MySQL
takes MYSQL_PWD and the section client of ~/.my.cnf. A file of SQLite is for processes on one
machine.`,
		Harmless: []string{
			"ssl-key", "sslmode", "sslrootcert", "sslcert", "sslkey", "service", "target_session_attrs", "connect_timeout",
			"application_name", "default_query_exec_mode", "host", "port", "user", "dbname",
		},
		Polled:      []string{"MySQL", "MariaDB"},
		TokenDigits: len("1795270861001002"), // microseconds of a server's clock
		DemoLease:   2 * time.Second,
		Parse:       func(scheme, raw string) (kind.Place, error) { return parse(scheme, raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

// Pushes reports whether the store pushes changes.
func (s *Place) Pushes() bool {
	return s.Scheme == "postgres" && s.Push != "off" || s.Scheme == "sqlite"
}

// database holds the differences between the databases.
type database struct {
	name    string // for people
	example string
	dialect func() sqlstore.Dialect
	connect func(*Place, kind.Options) (*sql.DB, error)
	// client is the beginning of a command that runs a statement; text is the SQL for the value as
	// text.
	client, text string
	authority    string // the parameter that names the file with the CA
	encrypt      string // how to turn on TLS on the server, and the parameter to do without
}

var databases = map[string]database{
	"postgres": {
		"PostgreSQL", examplePostgres, sqlstore.Postgres, (*Place).openPostgres, "psql %s -c", "convert_from(value, 'UTF8')", "sslrootcert=FILE",
		"ssl = on there, or give sslmode=prefer",
	},
	"mysql": {
		"MySQL", exampleMySQL, sqlstore.MySQL, (*Place).openMySQL, "mysql %s -e", "convert(value USING utf8mb4)", "ssl-ca=FILE",
		"ssl_cert and ssl_key there, or give tls=preferred",
	},
	"sqlite": {
		"SQLite", exampleSQLite, sqlstore.SQLite, (*Place).openSQLite, "sqlite3 %s", "CAST(value AS TEXT)", "", "",
	},
}

func (s *Place) database() database { return databases[s.Scheme] }

// String returns the URL without credentials.
func (s *Place) String() string {
	sign := "?"
	if strings.Contains(s.URL, "?") {
		sign = "&"
	}
	u := kind.With(s.Scheme+":"+s.URL, sign, [2]string{"table", s.Table}, [2]string{"listen", s.Listen}, [2]string{"push", s.Push})
	return redact(u)
}

func redact(url string) string { return kind.Redact([]*kind.Kind{Kind()}, url) }

// GoString is String.
func (s *Place) GoString() string { return s.String() }

// Product returns the name of the database.
func (s *Place) Product() string { return s.database().name }

func (s *Place) options() (all []sqlstore.Option) {
	if s.Table != "" {
		all = append(all, sqlstore.WithTable(s.Table))
	}
	if s.Scheme == "sqlite" {
		all = append(all, sqlstore.WithFile(s.URL))
	}
	if s.Pristine {
		all = append(all, sqlstore.WithPristine())
	}
	return all
}

// Limits calls no server.
func (s *Place) Limits() (driver.Bounded, error) {
	db := sql.OpenDB(unconnected{})
	defer func() { _ = db.Close() }()
	return sqlstore.New(db, s.database().dialect(), s.options()...)
}

var errUnopened = errors.New("the store has not been opened")

// unconnected is the connector of a database that is never called.
type unconnected struct{}

// Connect returns an error.
func (unconnected) Connect(context.Context) (sqldriver.Conn, error) { return nil, errUnopened }

// Driver returns nothing.
func (unconnected) Driver() sqldriver.Driver { return nil }

// Open returns a store with a pool of its own. It calls the server only to make the table.
func (s *Place) Open(ctx context.Context, o kind.Options) (*kind.Opened, error) {
	db, err := s.database().connect(s, o)
	if err != nil {
		return nil, err
	}
	// one is enough, but calls that were given up may still hold a connection
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(2) // the other one serves while a late call keeps the first
	store, err := s.over(db, o)
	if err == nil && o.Create {
		err = store.Create(ctx)
	}
	if err != nil {
		_ = db.Close()
		return nil, s.Explain(err)
	}
	return &kind.Opened{Driver: store, Close: db.Close}, nil
}

// table is a store that can make its table.
type table interface {
	driver.Store
	Create(ctx context.Context) error
}

// over returns the store over a pool.
func (s *Place) over(db *sql.DB, o kind.Options) (table, error) {
	switch {
	case !s.Pushes():
		return sqlstore.New(db, s.database().dialect(), s.options()...)
	case s.Scheme == "sqlite":
		return sqlstore.NewSQLite(db, s.options()...)
	}
	listen, err := s.listener(o)
	if err != nil {
		return nil, err
	}
	store, err := pgxstore.New(db, listen, s.options()...)
	if err != nil {
		return nil, err
	}
	store.BeforeConnect(beforePostgres(o, listen, s.listener))
	return store, nil
}

// Commands returns those of the database's own client.
func (s *Place) Commands(key string) kind.Commands {
	d, table := s.database(), s.table()
	where := fmt.Sprintf("WHERE name = '%s'", strings.ReplaceAll(key, "'", "''"))
	client := fmt.Sprintf(d.client, s.target())
	return kind.Commands{
		Look:   fmt.Sprintf(`%s "SELECT %s FROM %s %s"`, client, d.text, table, where),
		Delete: fmt.Sprintf(`%s "DELETE FROM %s %s"`, client, table, where),
	}
}

// target returns the arguments by which the database's own client names the database and the user,
// without a password: the clients ask for it, or find it in files of their own.
func (s *Place) target() string {
	if s.Scheme == "sqlite" {
		return s.URL
	}
	user, place, _ := kind.CutUser(strings.TrimPrefix(redact(s.Scheme+":"+s.URL), s.Scheme+"://"))
	user, _, asks := strings.Cut(strings.TrimSuffix(user, "@"), ":")
	if user == fault.Hidden {
		user = ""
	}
	if s.Scheme == "mysql" {
		return mysqlTarget(user, asks, place)
	}
	if user != "" {
		user += "@"
	}
	return "'postgres://" + user + place + "'"
}

func mysqlTarget(user string, asks bool, place string) string {
	place, _, _ = strings.Cut(place, "?")
	host, name, _ := strings.Cut(place, "/")
	host, port, _ := strings.Cut(host, ":")
	args := "-h " + host
	if port != "" {
		args += " -P " + port
	}
	if user != "" {
		args += " -u " + user
	}
	if asks {
		args += " -p"
	}
	return args + " " + name
}

// The forms of URLs of databases in hints.
const (
	examplePostgres = "postgres://user@host/database?table=tenure"
	exampleMySQL    = "mysql://user@host/database?table=tenure"
	exampleSQLite   = "sqlite:/path/elections.db"
)

var mysqlParameters = []string{"table", "tls", "ssl-ca", "ssl-cert", "ssl-key"}

// secretParameters matches parameters that must not be in a URL, where other users could see them.
var secretParameters = regexp.MustCompile(`(?i)pass|secret|token`)

// parse reads a URL of the form postgres://[user[:password]@][host[:port],...]/database[?...],
// mysql://... or sqlite:PATH[?table=NAME].
func parse(scheme, raw string) (*Place, error) {
	s := &Place{Scheme: scheme}
	example := databases[scheme].example
	if _, behind, _ := strings.Cut(strings.TrimPrefix(raw, scheme+"://"), "/"); scheme != "sqlite" && strings.Contains(behind, "@") ||
		scheme != "sqlite" && strings.LastIndex(raw, "@") > strings.IndexAny(raw+"?", "?") {
		return nil, fault.New("write / ? and @ of a password or a value as %2F, %3F and %40", "has an @ behind the first / or ?")
	}
	if scheme == "postgres" && !isPlainPostgres(raw) {
		return nil, fault.New("write special characters of a user or a password as %XX, such as %40 for @; give a URL such as "+example, "is not a valid URL")
	}
	place, query, _ := strings.Cut(strings.TrimPrefix(raw, scheme+":"), "?")
	if strings.Contains(place, "#") || strings.Contains(query, "#") {
		return nil, fault.New("write # as %23", "has a fragment behind #")
	}
	rest, err := s.takeOwn(query)
	if err != nil {
		return nil, err
	}
	switch {
	case scheme == "sqlite" && rest != "":
		return nil, fault.New("known are table and pristine, as in "+exampleSQLite+"?table=tenure&pristine=true", "has a parameter that SQLite does not take")
	case scheme == "sqlite":
		s.URL = strings.TrimPrefix(place, "//")
		if s.URL == "" || s.URL == ":memory:" {
			return nil, fault.New("give a file, as in "+exampleSQLite, "names no file; all candidates must share one")
		}
		if host, _, _ := strings.Cut(s.URL, "/"); s.URL != place && strings.Contains(host, "@") {
			return nil, fault.New("give a file, as in "+exampleSQLite, "names a user and a server; SQLite has neither")
		}
	default:
		s.URL = place
		if rest != "" {
			s.URL += "?" + rest
		}
		if _, name, _ := strings.Cut(strings.TrimPrefix(place, "//"), "/"); scheme == "mysql" && name == "" {
			return nil, fault.New("give a URL such as "+example, "names no database")
		}
	}
	if _, err := s.Limits(); err != nil { // of the table
		return nil, fault.New("give a URL such as "+example, "%w", err)
	}
	return s, nil
}

// isPlainPostgres reports whether all programs see the same user, password and hosts in a URL:
// where the user or the password has an @, PostgreSQL's tools take the rest for a host.
func isPlainPostgres(raw string) bool {
	user, _, ok := kind.CutUser(strings.TrimPrefix(raw, "postgres://"))
	_, err := url.PathUnescape(user)
	return ok && err == nil && strings.Count(user, "@") <= 1 && !strings.Contains(user, " ")
}

// takeOwn takes out the parameters that are not the database's own, and returns the others.
func (s *Place) takeOwn(query string) (rest string, err error) {
	values, err := kind.ParseQuery(query)
	if err != nil {
		return "", err
	}
	for _, key := range kind.KeysIn(query) {
		all := values[key]
		switch {
		case secretParameters.MatchString(key):
			return "", fault.New("use PGPASSFILE, PGPASSWORD, MYSQL_PWD or ~/.my.cnf", "has a secret behind ?, where others could see it")
		case !kind.IsHarmless([]*kind.Kind{Kind()}, key, all[0]) && !kind.IsName(key, all[0]):
			return "", fault.New("give a URL such as "+databases[s.Scheme].example, "an unknown parameter has no value")
		case len(all) > 1:
			return "", fault.New("leave out one of them", "parameter %.40q is given twice", key)
		case all[0] == "":
			return "", fault.New("give a URL such as "+databases[s.Scheme].example, "parameter %.40q is empty", key)
		case s.Scheme == "mysql" && !slices.Contains(mysqlParameters, key):
			return "", fault.New("known are "+strings.Join(mysqlParameters, ", "), "parameter %.40q is unknown", key)
		case s.Scheme == "mysql" && strings.HasPrefix(key, "ssl-") && !slices.Contains([]string{"", "true"}, values.Get("tls")):
			return "", fault.New("give tls=true, or leave tls out", "has %s, and tls=%.40s, which checks no certificate", key, fault.Shown(values.Get("tls")))
		}
	}
	s.Table = values.Get("table")
	values.Del("table")
	switch given := values.Get("pristine"); {
	case given == "":
	case s.Scheme != "sqlite":
		return "", fault.New("leave it out", "parameter pristine is for SQLite, not for %s", s.Scheme)
	case given != "true":
		return "", fault.New("give pristine=true for a new file, or leave it out", "parameter pristine is %s, not true", fault.Quote(given))
	default:
		s.Pristine = true
		values.Del("pristine")
	}
	if s.Scheme == "postgres" {
		s.Listen, s.Push = values.Get("listen"), values.Get("push")
		values.Del("listen")
		values.Del("push")
	}
	return values.Encode(), s.checkPush()
}

// checkPush checks the settings of pushes.
func (s *Place) checkPush() error {
	switch s.Push {
	case "off":
		if s.Listen != "" {
			return fault.New("leave one of them out", "has push=off and an address to listen at")
		}
	case "on":
		s.Push = "" // it is the default
	case "":
	default:
		return fault.New("give push=on or push=off", "parameter push is %s, not on or off", fault.Quote(s.Push))
	}
	if s.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(s.Listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" {
		return fault.New("give listen=HOST:PORT", "parameter listen is %s, not HOST:PORT", fault.Quote(s.Listen))
	}
	return nil
}
