// Package sqld runs database servers for tests, on 127.0.0.1: PostgreSQL with a streaming standby,
// PgBouncer, and MariaDB. They have the settings of the Debian packages, unless a test gives
// others. The servers end with the process that started them.
package sqld

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
)

// server is one server process with a port, and a directory that its user owns.
type server struct {
	process.Process
	port int
	home string // where its directory is, by default the directory for temporary files
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
	return append([]string{tool(name), "-h", ports.Host, "-p", strconv.Itoa(p.port), "-U", "postgres"}, args...)
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
	return append([]string{name, "--no-defaults", "-h", ports.Host, "-P", strconv.Itoa(m.port), "-u", "root"}, args...)
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
