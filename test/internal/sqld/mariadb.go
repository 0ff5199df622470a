package sqld

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/tenure-go/tenure/test/internal/ports"
)

// The driver writes each lost connection to the standard error.
func init() { _ = mysql.SetLogger(&mysql.NopLogger{}) }

// MariaDB is a MariaDB server.
type MariaDB struct {
	process
	port int
}

// StartMariaDB runs a MariaDB server for the length of a test, with the default settings and these,
// such as "--innodb-flush-log-at-trx-commit=0". The user root needs no password.
func StartMariaDB(t testing.TB, settings ...string) *MariaDB {
	t.Helper()
	m := &MariaDB{port: freePort(t)}
	m.dir, m.user = directory(t, "mysql"), "mysql"
	t.Cleanup(func() { _ = m.Kill() })
	data := filepath.Join(m.dir, "data")
	must(t, m.run("mariadb-install-db", "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db"))
	m.command = append([]string{
		"mariadbd", "--no-defaults", "--datadir=" + data, "--port=" + strconv.Itoa(m.port), "--bind-address=" + ports.Host,
		"--socket=" + filepath.Join(m.dir, "socket"), "--pid-file=" + filepath.Join(m.dir, "pid"),
	}, settings...)
	must(t, m.Start())
	return m
}

// Start runs the server again, on its files and port.
func (m *MariaDB) Start() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return m.start(ctx, func(ctx context.Context) error { return ping(ctx, "mysql", m.DSN("root", "")) })
}

// Stop is an orderly shutdown.
func (m *MariaDB) Stop() error { return m.signal(syscall.SIGTERM, true) }

// Kill ends the server at once, as a crash does.
func (m *MariaDB) Kill() error { return m.signal(syscall.SIGKILL, true) }

// Pause stops the server in its tracks.
func (m *MariaDB) Pause() error { return m.signal(syscall.SIGSTOP, false) }

// Resume lets it go on.
func (m *MariaDB) Resume() error { return m.signal(syscall.SIGCONT, false) }

// Address is where the server listens.
func (m *MariaDB) Address() string { return ports.Address(m.port) }

// DSN names a database on the server, in the form of the driver, for a user without a password.
func (m *MariaDB) DSN(user, database string) string {
	return fmt.Sprintf("%s@tcp(%s)/%s", user, m.Address(), database)
}

// Open is a pool of connections for a user, until the test ends.
func (m *MariaDB) Open(t testing.TB, user, database string) *sql.DB {
	t.Helper()
	return Open(t, "mysql", m.DSN(user, database))
}
