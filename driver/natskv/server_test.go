package natskv

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience is how long a test waits for what should happen at once.
const patience = 10 * time.Second

// serverDir tells the test binary to be a server on this directory, so that a test can kill it.
const (
	serverDir  = "NATSKV_TEST_SERVER_DIR"
	serverPort = "NATSKV_TEST_SERVER_PORT"
)

// TestMain lets more tests run side by side than there are processors: they wait far more than they work.
func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		serveUntilKilled(dir, os.Getenv(serverPort))
	}
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(dir, port string) {
	o := serverOptions(dir)
	o.Port, _ = strconv.Atoi(port)
	s, err := server.NewServer(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.Start()
	select {}
}

func serverOptions(dir string) *server.Options {
	return &server.Options{
		Host:      "127.0.0.1",
		Port:      server.RANDOM_PORT,
		JetStream: true,
		StoreDir:  dir,
		NoLog:     true,
		NoSigs:    true,
	}
}

// long skips a test unless the variable is set with which the project's checks ask for all there is.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() || os.Getenv("TENURE_NATS") == "" {
		t.Skip("it takes long: TENURE_NATS=all go test -count=1 ./driver/natskv")
	}
}

// startServer runs a server in this process, on an empty directory unless an option names another one.
func startServer(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := serverOptions(t.TempDir())
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
	address, err := url.Parse(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(address.Port())
	dir := s.StoreDir()
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
	port string
	cmd  *exec.Cmd
}

func startProcess(t testing.TB) *process {
	p := &process{t: t, dir: t.TempDir(), port: freePort(t)}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) url() string { return "nats://127.0.0.1:" + p.port }

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serverDir+"="+p.dir, serverPort+"="+p.port)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// freePort is of a server that has stopped. Somebody else may take it, though hardly within a test.
func freePort(t testing.TB) string {
	s := startServer(t, withoutJetStream)
	address, err := url.Parse(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	s.WaitForShutdown()
	return address.Port()
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
	s, err := Open(testContext(t), js, name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
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
