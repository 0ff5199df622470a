// Package natsd runs NATS servers as processes of their own, alone or three as a cluster. Tests can
// stop, kill and pause them, cut them off from each other, and start them again on their files. To
// run them by hand: `go run ./test/internal/serve nats3`.
//
// The server is the Go module nats-server. The test program starts itself a second time as the
// server: there its call of Main never returns. The server ends with the program at the latest.
package natsd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// Server is a server process.
type Server struct {
	place   place
	said    said
	process *process.Process
}

// place holds the directory and ports of a server, for each start.
type place struct {
	Dir  string
	Port int
	// For members of a cluster.
	Name   string   `json:",omitempty"`
	Inner  int      `json:",omitempty"` // the port for the other servers
	Routes []string `json:",omitempty"`
	Hidden bool     `json:",omitempty"` // the other servers use only the given routes
}

// said has the addresses of a server, which it says when it is ready.
type said struct{ URL, Monitor string }

// Start runs a server on a directory.
func Start(dir string) (s *Server, err error) {
	err = onFree(ports.Free, 1, func(found []int) error {
		s = &Server{place: place{Dir: dir, Port: found[0]}}
		return s.Start()
	})
	return s, err
}

// Start starts a server that has ended, on its files and port.
func (s *Server) Start() error {
	encoded, err := json.Marshal(s.place)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log := filepath.Join(s.place.Dir, "log")
	if err := errors.Join(os.MkdirAll(s.place.Dir, 0o700), os.RemoveAll(log)); err != nil {
		return err
	}
	s.process = &process.Process{
		Name: "the NATS server " + s.place.Name, Command: []string{program}, Env: []string{variable + "=" + string(encoded)},
		Log: log,
		Answers: func(context.Context) error {
			text, err := os.ReadFile(log)
			if err != nil {
				return err
			}
			return json.NewDecoder(bytes.NewReader(text)).Decode(&s.said)
		},
	}
	if err := s.process.Start(); err != nil {
		s.Kill()
		return fmt.Errorf("the server does not start: %w", err)
	}
	return nil
}

// Kill ends the process by SIGKILL. It may be called twice.
func (s *Server) Kill() {
	if s.process != nil {
		_ = s.process.Kill()
	}
}

// Stop shuts the server down, as an operator does: the server hands over its streams and leaves.
// Stop returns when the process is gone.
func (s *Server) Stop() error { return s.process.Stop() }

// Pause stops the server by SIGSTOP: it stays connected and silent. It needs a Unix system.
func (s *Server) Pause() error { return s.process.Pause() }

// Resume continues a paused server.
func (s *Server) Resume() error { return s.process.Resume() }

// Name returns the name of a member of a cluster.
func (s *Server) Name() string { return s.place.Name }

// PID returns the number of the process. Each start changes it.
func (s *Server) PID() int { return s.process.PID() }

// URL returns the address for clients. A client without a user name has all rights.
func (s *Server) URL() string { return s.said.URL }

// Monitor returns the base URL of the server's monitoring.
func (s *Server) Monitor() string { return s.said.Monitor }

// attempts is how often onFree tries new ports: another process may take a port after it was found
// free.
const attempts = 5

// portTaken is in the reason that a server gives for not starting.
const portTaken = "address already in use"

// onFree calls start with n free ports, and again with others if the server refuses them.
func onFree(free func(int) ([]int, error), n int, start func([]int) error) (err error) {
	for range attempts {
		var found []int
		if found, err = free(n); err != nil {
			return err
		}
		if err = start(found); err == nil || !strings.Contains(err.Error(), portTaken) {
			return err
		}
	}
	return err
}

// Members is the number of servers of a cluster.
const Members = 3

// Cluster is three servers that replicate streams. Its methods may be called concurrently, except
// those that change the same server.
type Cluster struct {
	// Servers have the names n1 to n3.
	Servers [Members]*Server
	// routes are the relays from one server to another; nil if the routes are direct.
	routes [Members][Members]*relay.Relay
}

// StartCluster starts a cluster with its files under a directory. When it returns, the servers have
// started but may not have found each other. Ready waits for that.
func StartCluster(dir string) (*Cluster, error) { return startCluster(dir, false, ports.Free) }

// StartPartible is StartCluster for a cluster whose servers Part can cut off. The traffic between
// the servers passes through this process, so it is slower.
func StartPartible(dir string) (*Cluster, error) { return startCluster(dir, true, ports.Free) }

func startCluster(dir string, partible bool, free func(int) ([]int, error)) (c *Cluster, err error) {
	err = onFree(free, 2*Members, func(found []int) error {
		c = &Cluster{}
		if err := c.start(dir, partible, found[:Members], found[Members:]); err != nil {
			c.Kill()
			return err
		}
		return nil
	})
	return c, err
}

func (c *Cluster) start(dir string, partible bool, forClients, forRoutes []int) error {
	for i := range c.Servers {
		var routes []string
		for j, port := range forRoutes {
			if i == j {
				continue
			}
			url := "nats://" + ports.Address(port)
			if partible {
				r, err := relay.New(url)
				if err != nil {
					return err
				}
				c.routes[i][j], url = r, r.URL()
			}
			routes = append(routes, url)
		}
		name := fmt.Sprintf("n%d", i+1)
		c.Servers[i] = &Server{place: place{
			Dir: filepath.Join(dir, name), Port: forClients[i], Name: name, Inner: forRoutes[i], Routes: routes, Hidden: partible,
		}}
		if err := c.Servers[i].Start(); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends all servers, also paused ones.
func (c *Cluster) Kill() {
	for _, s := range c.Servers {
		if s != nil {
			s.Kill()
			c.each(s, (*relay.Relay).Close)
		}
	}
}

// URLs returns the addresses for clients.
func (c *Cluster) URLs() []string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.URL())
	}
	return all
}

// Others returns all servers except one.
func (c *Cluster) Others(than *Server) []*Server {
	var all []*Server
	for _, s := range c.Servers {
		if s != than {
			all = append(all, s)
		}
	}
	return all
}

// Part cuts a server off from the two others. Neither side notices at once: the connections stay
// open and silent. Clients still reach all three. Heal ends it. The cluster must be from
// StartPartible.
func (c *Cluster) Part(s *Server) { c.each(s, (*relay.Relay).Blackhole) }

// Heal undoes Part. Swallowed bytes are lost, and the connections with them.
func (c *Cluster) Heal(s *Server) { c.each(s, (*relay.Relay).Heal) }

// each calls do for the relays of a server in both directions, if there are any.
func (c *Cluster) each(s *Server, do func(*relay.Relay)) {
	for i, from := range c.routes {
		for j, r := range from {
			if r != nil && (c.Servers[i] == s || c.Servers[j] == s) {
				do(r)
			}
		}
	}
}

// shared is the cluster of this process's tests.
var shared struct {
	once sync.Once
	dir  string
	c    *Cluster
	err  error
}

// Shared returns one cluster from StartPartible for all tests of a package, whose TestMain calls
// End. The end of each test waits until its faults are repaired, so these tests must not be
// parallel.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	if !machine.Supported {
		t.Fatal("servers cannot be paused on this system: run the test on Linux")
	}
	shared.once.Do(func() { shared.c, shared.err = begin() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		ctx, cancel := wait.Background()
		defer cancel()
		if err := shared.c.Mend(ctx); err != nil {
			t.Error(err)
			// Later tests fail at once instead of waiting again.
			shared.err = fmt.Errorf("the servers are not whole since %s: %w", t.Name(), err)
		}
	})
	return shared.c
}

func begin() (*Cluster, error) {
	var err error
	if shared.dir, err = os.MkdirTemp("", "natsd-"); err != nil {
		return nil, err
	}
	c, err := StartPartible(shared.dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := wait.Background()
	defer cancel()
	return c, c.Ready(ctx)
}

// Tests runs the tests of a package and then ends the cluster of Shared.
func Tests(m *testing.M) {
	Main()
	code := m.Run()
	End()
	os.Exit(code)
}

// End ends the cluster of Shared.
func End() {
	if shared.c != nil {
		shared.c.Kill()
	}
	_ = os.RemoveAll(shared.dir)
}

// Mend undoes the faults of servers and routes, and waits until the cluster is ready again.
func (c *Cluster) Mend(ctx context.Context) error {
	var errs []error
	for _, s := range c.Servers {
		c.Heal(s)
		if s.process.Runs() {
			errs = append(errs, s.Resume())
		} else {
			errs = append(errs, s.Start())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.Ready(ctx)
}

const (
	// variable is the environment variable that makes a process a server.
	variable = "TENURE_TEST_NATSD"
	anyPort  = server.RANDOM_PORT
)

// Nobody is the name and the password of a user that may only read the state of streams.
const Nobody = "nobody"

// Main runs the server if Start started this process, and does not return then. In any other
// process it returns at once. Call it first.
func Main() {
	encoded := os.Getenv(variable)
	if encoded == "" {
		return
	}
	if err := serve(encoded); err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs the server until Stop asks it to shut down.
func serve(encoded string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	var p place
	if err := json.Unmarshal([]byte(encoded), &p); err != nil {
		return err
	}
	s, err := server.NewServer(options(p))
	if err != nil {
		return err
	}
	s.SetLogger(speaker{}, false, false)
	s.Start()
	if !s.ReadyForConnections(process.Patience) {
		return errors.New("not ready for connections")
	}
	ready := said{URL: s.ClientURL(), Monitor: "http://" + s.MonitorAddr().String()}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	<-stop
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// nowhere is the address that hidden servers announce to each other. Nothing listens there, so the
// servers connect only by the given routes.
const nowhere = "127.0.0.1:9"

func options(p place) *server.Options {
	const host = "127.0.0.1"
	o := &server.Options{
		Host: host, Port: p.Port, HTTPHost: host, HTTPPort: anyPort,
		JetStream: true, StoreDir: p.Dir, NoSigs: true,
		NoAuthUser: "all",
		Users: []*server.User{
			{Username: "all", Password: "all"},
			{Username: Nobody, Password: Nobody, Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO.>"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		},
	}
	if p.Name != "" {
		o.ServerName, o.Routes = p.Name, server.RoutesFromStr(strings.Join(p.Routes, ","))
		o.Cluster = server.ClusterOpts{Name: "test", Host: host, Port: p.Inner, NoAdvertise: true}
		if p.Hidden {
			o.Cluster.Advertise = nowhere
		}
	}
	return o
}

// speaker is the logger of a server. A server goes on after a fatal error unless its logger exits.
type speaker struct{}

// Fatalf gives the reason.
func (speaker) Fatalf(format string, v ...any) {
	fmt.Fprintf(os.Stderr, "natsd: "+format+"\n", v...)
	os.Exit(1)
}

func (speaker) Noticef(string, ...any) {}
func (speaker) Warnf(string, ...any)   {}
func (speaker) Errorf(string, ...any)  {}
func (speaker) Debugf(string, ...any)  {}
func (speaker) Tracef(string, ...any)  {}
