package sqld

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/tenure-go/tenure/internal/test/ports"
)

// Otherwise the driver reports each lost connection on the standard error.
func init() { _ = mysql.SetLogger(&mysql.NopLogger{}) }

// MariaDB is a MariaDB server.
type MariaDB struct{ server }

// RunMariaDB runs a MariaDB server with the default settings and these, such as
// "--innodb-flush-log-at-trx-commit=0". The user root needs no password. End ends it.
func RunMariaDB(settings ...string) (*MariaDB, error) {
	m := new(MariaDB)
	return m, m.create(settings)
}

func (m *MariaDB) create(settings []string) error {
	return m.settle("mysql", "mysql", func() string { return m.DSN("root", "") }, func(dir string) error {
		data := filepath.Join(dir, "data")
		// Two installations that share a directory for temporary tables disturb each other.
		if err := m.run("mariadb-install-db", "--no-defaults", "--datadir="+data, "--tmpdir="+dir,
			"--auth-root-authentication-method=normal", "--skip-test-db"); err != nil {
			return err
		}
		m.Command = append([]string{
			"mariadbd", "--no-defaults", "--datadir=" + data, "--tmpdir=" + dir, "--port=" + strconv.Itoa(m.port), "--bind-address=" + ports.Host,
			"--socket=" + filepath.Join(dir, "socket"), "--pid-file=" + filepath.Join(dir, "pid"),
		}, settings...)
		return m.Start()
	})
}

// StartMariaDB is RunMariaDB for the length of a test, with files in memory.
func StartMariaDB(t testing.TB, settings ...string) *MariaDB {
	t.Helper()
	m := &MariaDB{server{home: memory()}}
	return started(t, m, m.create(settings))
}

// Encrypt restarts the server with TLS, from PEM files. Clients may still connect without TLS.
func (m *MariaDB) Encrypt(t testing.TB, ca, cert, key string) {
	t.Helper()
	m.encrypt(t, map[string]string{"--ssl-ca=": ca, "--ssl-cert=": cert, "--ssl-key=": key})
}

// DSN returns the driver's name of a database on the server, for a user without a password.
func (m *MariaDB) DSN(user, database string) string {
	return fmt.Sprintf("%s@tcp(%s)/%s", user, m.Address(), database)
}

// Open returns a pool of connections for a user. The end of the test closes it.
func (m *MariaDB) Open(t testing.TB, user, database string) *sql.DB {
	t.Helper()
	return Open(t, "mysql", m.DSN(user, database))
}
