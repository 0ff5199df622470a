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
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
)

// server is one server process with a port, and a directory that its user owns.
type server struct {
	process.Process
	port int
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
	if s.Dir, err = os.MkdirTemp("", "sqld-"); err != nil {
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
