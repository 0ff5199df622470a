package stores

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

// SQL is a table of a database.
type SQL struct {
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

// pushes reports whether the store pushes changes.
func (s *SQL) pushes() bool {
	return s.Scheme == "postgres" && s.Push != "off" || s.Scheme == "sqlite"
}

// database holds the differences between the databases.
type database struct {
	name    string // for people
	shape   string
	dialect func() sqlstore.Dialect
	connect func(*SQL, Options) (*sql.DB, error)
	// client is the beginning of a command that runs a statement; text is the SQL for the value as
	// text.
	client, text string
	authority    string // the parameter that names the file with the CA
	encrypt      string // how to turn on TLS on the server, and the parameter to do without
}

var databases = map[string]database{
	"postgres": {
		"PostgreSQL", shapePostgres, sqlstore.Postgres, (*SQL).openPostgres, "psql %s -c", "convert_from(value, 'UTF8')", "sslrootcert=FILE",
		"ssl = on there, or give sslmode=prefer",
	},
	"mysql": {
		"MySQL", shapeMySQL, sqlstore.MySQL, (*SQL).openMySQL, "mysql %s -e", "convert(value USING utf8mb4)", "ssl-ca=FILE",
		"ssl_cert and ssl_key there, or give tls=preferred",
	},
	"sqlite": {
		"SQLite", shapeSQLite, sqlstore.SQLite, (*SQL).openSQLite, "sqlite3 %s", "CAST(value AS TEXT)", "", "",
	},
}

func (s *SQL) database() database { return databases[s.Scheme] }

// String returns the URL without credentials.
func (s *SQL) String() string {
	u, sign := s.Scheme+":"+s.URL, "?"
	for _, own := range [][2]string{{"table", s.Table}, {"listen", s.Listen}, {"push", s.Push}} {
		if strings.Contains(u, "?") {
			sign = "&"
		}
		if own[1] != "" {
			u += sign + own[0] + "=" + own[1]
		}
	}
	return Redact(u)
}

// GoString is String.
func (s *SQL) GoString() string { return s.String() }

func (s *SQL) name() string { return s.String() }

func (s *SQL) options() (all []sqlstore.Option) {
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

// limits calls no server.
func (s *SQL) limits() (driver.Bounded, error) {
	db := sql.OpenDB(unconnected{})
	defer func() { _ = db.Close() }()
	return sqlstore.New(db, s.database().dialect(), s.options()...)
}

// unconnected is the connector of a database that is never called.
type unconnected struct{}

// Connect returns an error.
func (unconnected) Connect(context.Context) (sqldriver.Conn, error) { return nil, errUnopened }

// Driver returns nothing.
func (unconnected) Driver() sqldriver.Driver { return nil }

// open returns a store with a pool of its own. It calls the server only to make the table.
func (s *SQL) open(ctx context.Context, o Options) (*Store, error) {
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
		return nil, s.explain(err)
	}
	return &Store{Driver: store, close: db.Close}, nil
}

// table is a store that can make its table.
type table interface {
	driver.Store
	Create(ctx context.Context) error
}

// over returns the store over a pool.
func (s *SQL) over(db *sql.DB, o Options) (table, error) {
	switch {
	case !s.pushes():
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
	store.BeforeConnect(o.beforePostgres(listen, s.listener))
	return store, nil
}

func (s *SQL) check(ctx context.Context, store *Store, key string) error {
	if _, err := store.Driver.Read(ctx, key); err != nil {
		return s.explain(err)
	}
	return nil
}

// commands returns those of the database's own client.
func (s *SQL) commands(key string) Commands {
	d, table := s.database(), s.table()
	where := fmt.Sprintf("WHERE name = '%s'", strings.ReplaceAll(key, "'", "''"))
	client := fmt.Sprintf(d.client, s.target())
	return Commands{
		Look:   fmt.Sprintf(`%s "SELECT %s FROM %s %s"`, client, d.text, table, where),
		Delete: fmt.Sprintf(`%s "DELETE FROM %s %s"`, client, table, where),
	}
}

// target returns the arguments by which the database's own client names the database and the user,
// without a password: the clients ask for it, or find it in files of their own.
func (s *SQL) target() string {
	if s.Scheme == "sqlite" {
		return s.URL
	}
	user, place, _ := cutUser(strings.TrimPrefix(Redact(s.Scheme+":"+s.URL), s.Scheme+"://"))
	user, _, asks := strings.Cut(strings.TrimSuffix(user, "@"), ":")
	if user == hidden {
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
