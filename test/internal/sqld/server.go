// Package sqld runs database servers for tests, on 127.0.0.1: PostgreSQL with a streaming standby,
// PgBouncer, and MariaDB. They have the settings of the Debian packages, unless a test gives
// others. Newer ones come from Maven: pom.xml has their versions. The servers end with the process
// that started them.
package sqld

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
)

// server is one server process with a port, and a directory that its user owns.
type server struct {
	process.Process
	port int
	home string // where its directory is, by default the directory for temporary files
	// programs is the directory of its programs, with bin in it; empty: Debian's.
	programs string
}

// settle gives the server a port and a directory, and then calls begin, which starts it. Only the
// user of the test can read the directories of package testing. The server answers when a client of
// this driver can ping the DSN.
func (s *server) settle(user, driver string, dsn func() string, begin func(dir string) error) (err error) {
	found, err := ports.Free(1)
	if err != nil {
		return err
	}
	s.User, s.port = user, found[0]
	s.Answers = func(ctx context.Context) error { return ping(ctx, driver, dsn()) }
	if s.Dir, err = os.MkdirTemp(s.home, "sqld-"); err != nil {
		return err
	}
	s.Log = filepath.Join(s.Dir, "log")
	if err := os.Chmod(s.Dir, 0o755); err != nil {
		return err
	}
	if err := s.own(s.Dir); err != nil {
		return err
	}
	return begin(s.Dir)
}

// own gives a file to the user of the server.
func (s *server) own(path string) error {
	uid, gid, err := process.IDs(s.User)
	if err != nil || uid < 0 {
		return err
	}
	return os.Chown(path, uid, gid)
}

// give copies a file into the directory of the server, which can read it there. It returns the
// path.
func (s *server) give(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	given := filepath.Join(s.Dir, filepath.Base(file))
	if err := os.WriteFile(given, text, 0o600); err != nil {
		return "", err
	}
	return given, s.own(given)
}

// encrypt restarts the server with settings for TLS, each with the file of an authority, a
// certificate or a key. Clients may still connect without TLS.
func (s *server) encrypt(t testing.TB, settings map[string]string) {
	t.Helper()
	for setting, file := range settings {
		given, err := s.give(file)
		must(t, err)
		s.Command = append(s.Command, setting+given)
	}
	must(t, s.Stop())
	must(t, s.Start())
}

// Address is where the server listens.
func (s *server) Address() string { return ports.Address(s.port) }

// End kills the server and removes its files.
func (s *server) End() {
	_ = s.Kill()
	_ = os.RemoveAll(s.Dir)
}

// started is for a server that runs for the length of a test.
func started[S interface{ End() }](t testing.TB, s S, err error) S {
	t.Helper()
	t.Cleanup(s.End)
	must(t, err)
	return s
}

// prepared returns a command that runs in the directory of the server, as its user.
func (s *server) prepared(command ...string) (*exec.Cmd, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = s.Dir
	return cmd, process.As(cmd, s.User)
}

// run runs a command to its end, as the user of the server.
func (s *server) run(command ...string) error {
	cmd, err := s.prepared(command...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return nil
}

// output runs a command as run does, and returns what it prints.
func (s *server) output(t testing.TB, command ...string) []byte {
	t.Helper()
	cmd, err := s.prepared(command...)
	must(t, err)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, failure.Bytes())
	}
	return out
}

// Dump returns the statements that recreate the tables of a database, as pg_dump writes them.
func (p *Postgres) Dump(t testing.TB, database string) []byte {
	t.Helper()
	return p.output(t, p.client("pg_dump", "--clean", "--if-exists", database)...)
}

// Restore runs the statements of a dump.
func (p *Postgres) Restore(t testing.TB, database string, dump []byte) {
	t.Helper()
	p.output(t, p.client("psql", "--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-f", p.file(t, dump), database)...)
}

func (p *Postgres) client(name string, args ...string) []string {
	return append([]string{p.tool(name), "-h", ports.Host, "-p", strconv.Itoa(p.port), "-U", "postgres"}, args...)
}

// Dump returns the statements that recreate the tables of a database, as mariadb-dump writes them.
func (m *MariaDB) Dump(t testing.TB, database string) []byte {
	t.Helper()
	return m.output(t, m.client("mariadb-dump", database)...)
}

// Restore runs the statements of a dump.
func (m *MariaDB) Restore(t testing.TB, database string, dump []byte) {
	t.Helper()
	m.output(t, m.client("mariadb", "-e", "source "+m.file(t, dump), database)...)
}

func (m *MariaDB) client(name string, args ...string) []string {
	return append([]string{m.program("bin", name), "--no-defaults", "-h", ports.Host, "-P", strconv.Itoa(m.port), "-u", "root"}, args...)
}

// file creates a file that the user of the server may read, and returns its path.
func (s *server) file(t testing.TB, content []byte) string {
	t.Helper()
	f, err := os.CreateTemp(s.Dir, "file-")
	must(t, err)
	_, err = f.Write(content)
	must(t, err)
	must(t, f.Close())
	must(t, os.Chmod(f.Name(), 0o644))
	path, err := filepath.Abs(f.Name())
	must(t, err)
	return path
}

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
	user := "mysql"
	if m.programs != "" {
		user = "" // it may not be able to read the programs
	}
	return m.settle(user, "mysql", func() string { return m.DSN("root", "") }, func(dir string) error {
		data := filepath.Join(dir, "data")
		where := []string{"--no-defaults"}
		if m.programs != "" {
			where = append(where, "--basedir="+m.programs, "--user=root")
		}
		// Two installations that share a directory for temporary tables disturb each other.
		if err := m.run(slices.Concat([]string{m.program("scripts", "mariadb-install-db")}, where, []string{
			"--datadir=" + data, "--tmpdir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db",
		})...); err != nil {
			return err
		}
		m.Command = slices.Concat([]string{m.program("bin", "mariadbd")}, where, []string{
			"--datadir=" + data, "--tmpdir=" + dir, "--port=" + strconv.Itoa(m.port), "--bind-address=" + ports.Host,
			"--socket=" + filepath.Join(dir, "socket"), "--pid-file=" + filepath.Join(dir, "pid"),
		}, settings)
		return m.Start()
	})
}

// program returns the path of a program of MariaDB, which Debian has in PATH.
func (m *MariaDB) program(kind, name string) string {
	if m.programs == "" {
		return name
	}
	return filepath.Join(m.programs, kind, name)
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

// PgBouncer is a pooler in front of a PostgreSQL server.
type PgBouncer struct{ server }

// RunPgBouncer runs a pooler. The mode is session, transaction or statement. Only the role postgres
// may connect, without a password. The pooler tries a failed server again after 1 s; the default is
// 15 s. PgBouncer 1.18 may end by itself, with "bad client state", when clients vanish: then it is
// started again.
func RunPgBouncer(p *Postgres, mode string) (*PgBouncer, error) {
	b := new(PgBouncer)
	return b, b.settle("postgres", "pgx", func() string { return b.DSN("postgres", "postgres") }, func(dir string) error {
		users, file := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
		b.Command, b.Respawn = []string{"pgbouncer", file}, true
		return errors.Join(
			os.WriteFile(users, []byte("\"postgres\" \"\"\n"), 0o644),
			os.WriteFile(file, fmt.Appendf(nil, settings, ports.Host, p.port, ports.Host, b.port, users, mode), 0o644),
			b.Start(),
		)
	})
}

// StartPgBouncer is RunPgBouncer for the length of a test.
func StartPgBouncer(t testing.TB, p *Postgres, mode string) *PgBouncer {
	t.Helper()
	b, err := RunPgBouncer(p, mode)
	return started(t, b, err)
}

const settings = `[databases]
* = host=%s port=%d
[pgbouncer]
listen_addr = %s
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = %s
server_login_retry = 1
`

// DSN returns the URL of a database behind the pooler for a role. The client sends statements
// without names, because in transaction mode the next transaction may get another session.
func (b *PgBouncer) DSN(role, database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?default_query_exec_mode=exec", role, ports.Address(b.port), database)
}
