package natskv

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience is how long a test waits for what should happen at once. A cluster in one process may take most of it to elect.
const patience = 20 * time.Second

// serverDir tells the test binary to be a server on this directory, so that a test can kill it.
const (
	serverDir  = "NATSKV_TEST_SERVER_DIR"
	serverPort = "NATSKV_TEST_SERVER_PORT"
)

// TestMain lets more tests run side by side than there are processors: they wait far more than they work.
func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		port, _ := strconv.Atoi(os.Getenv(serverPort))
		serveUntilKilled(dir, port)
	}
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(dir string, port int) {
	s, err := server.NewServer(serverOptions(dir, port))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.Start()
	select {}
}

func serverOptions(dir string, port int) *server.Options {
	return &server.Options{
		Host:      "127.0.0.1",
		Port:      port,
		JetStream: true,
		StoreDir:  dir,
		NoLog:     true,
		NoSigs:    true,
	}
}

// mayTakeLong reports whether the variable is set with which the project's checks ask for all there is.
func mayTakeLong() bool { return !testing.Short() && os.Getenv("TENURE_NATS") != "" }

func long(t testing.TB) {
	t.Helper()
	if !mayTakeLong() {
		t.Skip("it takes long: TENURE_NATS=all go test -count=1 ./driver/natskv")
	}
}

// startServer runs a server in this process, on an empty directory unless an option names another one.
func startServer(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := serverOptions(t.TempDir(), freePort(t))
	for _, c := range change {
		c(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s
}

func withoutJetStream(o *server.Options) { o.JetStream = false }

// restart stops a server and runs another one on its directory and port.
func restart(t testing.TB, s *server.Server, between func(), change ...func(*server.Options)) *server.Server {
	t.Helper()
	port, dir := s.Addr().(*net.TCPAddr).Port, s.StoreDir()
	s.Shutdown()
	s.WaitForShutdown()
	if between != nil {
		between()
	}
	return startServer(t, append(change, func(o *server.Options) { o.StoreDir, o.Port = dir, port })...)
}

// process is a server of its own that can be killed.
type process struct {
	t    testing.TB
	dir  string
	port int
	cmd  *exec.Cmd
}

func startProcess(t testing.TB) *process {
	p := &process{t: t, dir: t.TempDir(), port: freePort(t)}
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

// lastPort is what freePort gave last. It begins anywhere, so that another run of these tests has others.
var lastPort atomic.Int64

func init() { lastPort.Store(mathrand.Int64N(10_000)) }

// freePort is from 10000 to 19999, below what systems give to clients and to those who take any port: a server that is
// started again finds its own free.
func freePort(t testing.TB) int {
	t.Helper()
	for range 10_000 {
		port := 10_000 + int(lastPort.Add(1)%10_000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func connect(t testing.TB, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	opts = append([]nats.Option{
		nats.ReconnectWait(10 * time.Millisecond),
		nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	eventually(t, "the connection is made", nc.IsConnected)
	return nc
}

func newJetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// testContext ends with the test or when patience does.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for pause := time.Millisecond; !ok(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(pause)
	}
}

// newBucketName is unique, so that tests can share a server.
func newBucketName() string { return "B" + rand.Text()[:12] }

// addBucket makes a bucket with the standard client, as programs and operators do.
func addBucket(t testing.TB, js jetstream.JetStream, change ...func(*jetstream.KeyValueConfig)) jetstream.KeyValue {
	t.Helper()
	c := jetstream.KeyValueConfig{Bucket: newBucketName(), History: 1, Storage: jetstream.FileStorage}
	for _, ch := range change {
		ch(&c)
	}
	kv, err := js.CreateKeyValue(testContext(t), c)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func inMemory(c *jetstream.KeyValueConfig) { c.Storage = jetstream.MemoryStorage }

func inThree(c *jetstream.KeyValueConfig) { c.Replicas = 3 }

func withTTL(ttl time.Duration) func(*jetstream.KeyValueConfig) {
	return func(c *jetstream.KeyValueConfig) { c.TTL = ttl }
}

func openStore(t testing.TB, js jetstream.JetStream, name string, opts ...Option) *Store {
	t.Helper()
	var s *Store
	err := undisturbed(testContext(t), func(ctx context.Context) (err error) {
		s, err = Open(ctx, js, name, opts...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// undisturbed does again what came to nothing because the connection was made anew: an own one is as soon as the machine is
// held up for long enough.
func undisturbed(ctx context.Context, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if !errors.Is(err, errOffline) && !errors.Is(err, errLost) && !errors.Is(err, nats.ErrDisconnected) || ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// fixture is a server with one bucket, seen by the store and by the standard client.
type fixture struct {
	testing.TB
	server *server.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	store  *Store
}

func newFixture(t testing.TB, change ...func(*jetstream.KeyValueConfig)) *fixture {
	t.Helper()
	s := startServer(t)
	nc := connect(t, s.ClientURL())
	js := newJetStream(t, nc)
	kv := addBucket(t, js, change...)
	return &fixture{TB: t, server: s, nc: nc, js: js, kv: kv, store: openStore(t, js, kv.Bucket())}
}
