//go:build integration

package natskv

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
)

// long skips repetitions of a test where one pass is enough.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one pass only, because of -short")
	}
}

// serverDir makes the test binary a server on this directory, so that a test can kill it.
const (
	serverDir  = "NATSKV_TEST_SERVER_DIR"
	serverPort = "NATSKV_TEST_SERVER_PORT"
)

// asProcess does not return if this process is a server that a test has started.
func asProcess() {
	dir := os.Getenv(serverDir)
	if dir == "" {
		return
	}
	o := natstest.ServerOptions(dir)
	o.DontListen, o.Host = false, "127.0.0.1"
	o.Port, _ = strconv.Atoi(os.Getenv(serverPort))
	s, err := server.NewServer(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.Start()
	select {}
}

// process is a server in its own process, which can be killed.
type process struct {
	t    testing.TB
	dir  string
	port int
	cmd  *exec.Cmd
}

func startProcess(t testing.TB) *process {
	p := &process{t: t, dir: t.TempDir(), port: natstest.FreePort(t)}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) url() string { return fmt.Sprint("nats://127.0.0.1:", p.port) }

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serverDir+"="+p.dir, fmt.Sprint(serverPort, "=", p.port))
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
