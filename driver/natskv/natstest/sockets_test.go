//go:build integration

package natstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/test/wait"
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
	o := ServerOptions(dir)
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
	p := &process{t: t, dir: t.TempDir(), port: FreePort(t)}
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

func (v variant) skip(t *testing.T) {
	t.Helper()
	if v.rare {
		long(t)
	}
}

func TestConformanceOnSockets(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			v.skip(t)
			s := StartServer(t, withLimitedUser)
			drivertest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}

func TestElectionsOnSockets(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			v.skip(t)
			t.Parallel()
			s := StartServer(t, withLimitedUser)
			electiontest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}

// TestKilledServer: a server that is killed without warning keeps versions and the order of writes.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	nc := natsnet.Connect(t, p.url())
	js := natsnet.JetStream(t, nc)
	kv := addBucket(t, js)
	store := openStore(t, js, kv.Bucket())
	v := driver.Version("unwritten 0")
	for range 50 {
		var err error
		if v, err = store.CompareAndSwap(wait.Context(t), testKey, v, []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	pushed := watchAll(t, store, testKey)

	p.kill()
	wait.Until(t, "the connection is lost", func() bool { return !nc.IsConnected() })
	if _, err := store.CompareAndSwap(wait.Context(t), testKey, v, []byte("lost")); !leftOpen(err) {
		t.Errorf("a swap on a dead server: %v; want an error that leaves it open", err)
	}
	p.start()
	wait.Until(t, "the server is back", func() bool { return readable(store) })

	e, err := store.Read(wait.Context(t), testKey)
	if err != nil || e.Version != v || e.Floor < 50 {
		t.Fatalf("after the restart: %+v, %v; want version %s", e, err, v)
	}
	if v, err = store.CompareAndSwap(wait.Context(t), testKey, v, []byte("after")); err != nil {
		t.Fatal(err)
	}
	pushed.await(t, v)
}

// TestCloseLeavesNothing: Close leaves nothing behind on a connection that stays open. The server's
// goroutines do not count.
func TestCloseLeavesNothing(t *testing.T) {
	nc := natsnet.Connect(t, startProcess(t).url())
	js := natsnet.JetStream(t, nc)
	f := &fixture{TB: t, nc: nc, js: js, kv: addBucket(t, js)}
	before := runtime.NumGoroutine()
	subs := f.nc.NumSubscriptions()
	for name, s := range f.each() {
		h := watchAll(t, s, testKey)
		h.await(t, versionOf(f.put(testKey, "v")))
		f.must(s.Close())
		f.must(s.Close())
		if _, err := s.Watch(wait.Context(t), testKey, func(driver.Entry) {}); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s: a watch after close: %v", name, err)
		}
		h.stop()
		f.read(s, testKey)
	}
	wait.Until(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= before })
	wait.Until(t, "the subscriptions are gone", func() bool { return f.nc.NumSubscriptions() <= subs })
}

// TestRefusedCredentials: a server that comes back with other users is reported as a missing right.
// The connection keeps trying without end, because the next change of the configuration may admit
// it.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var refusals natsnet.Errors
	s := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, f.server.ClientURL(), nats.UserInfo("user", "x"))), f.kv.Bucket(),
		natskv.OwnConnection(nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals.Add(err) })))
	with := func(password string) func(*server.Options) {
		return func(o *server.Options) { o.Username, o.Password = "user", password }
	}
	refusing := restart(t, f.server, func() {}, with("other"))
	wait.Until(t, "the refusal is reported", func() bool {
		_, err := s.CompareAndSwap(wait.Context(t), testKey, "", []byte("v"))
		return errors.Is(err, driver.ErrDenied) && errors.Is(err, nats.ErrAuthorization)
	})
	wait.Until(t, "it is tried again and again", func() bool { return len(refusals.All()) >= 4 })
	restart(t, refusing, func() {}, with("x"))
	wait.Until(t, "the store is reached again", func() bool { return readable(s) })
}
