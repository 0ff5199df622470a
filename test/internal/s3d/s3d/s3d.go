// Package s3d runs servers that speak S3, as processes of their own. Tests can pause them, kill
// them, and start them again on their files.
//
// The servers are programs of other projects. If one is missing, the package manager of its
// language installs a fixed version into TENURE_TOOLS, or else into a directory of the user's
// cache. The servers listen only on 127.0.0.1 and end with this process. To run one by hand: `go
// run ./test/internal/serve versity`.
package s3d

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
)

// Server is one server, or several that work together, in running processes.
type Server struct {
	Kind Kind

	processes []*server
	stub      *stub
}

// Open installs the programs of a kind, which takes minutes the first time, and starts them over a
// directory. The path must be absolute. Port is the port of the first process that clients talk to;
// 0 takes a free one. Open returns when the servers answer. An error names a missing program, or
// has the end of a server's log. Stop ends the servers.
func Open(ctx context.Context, k Kind, dir string, port int) (*Server, error) {
	s := &Server{Kind: k}
	if k == Stub {
		var err error
		s.stub, err = newStub(port)
		return s, err
	}
	for _, g := range k.layout() {
		if err := s.add(ctx, g, dir, &port); err != nil {
			s.Stop()
			return nil, err
		}
	}
	if err := s.answers(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// add starts one more process. Wish is the port of the first process that clients talk to.
func (s *Server) add(ctx context.Context, g program, dir string, wish *int) error {
	p := place{dir: dir}
	if n := len(s.processes); n > 0 {
		p.behind = s.processes[n-1].url()
	}
	if !g.hidden {
		p.port, *wish = *wish, 0
	}
	if p.port > 0 {
		return s.run(ctx, g, p)
	}
	var err error
	for range 3 { // another process may take the port before this one does
		var free []int
		if free, err = ports.Free(1); err != nil {
			return err
		}
		p.port = free[0]
		if err = s.run(ctx, g, p); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// run starts a process in its place.
func (s *Server) run(ctx context.Context, g program, p place) error {
	p.address = ports.Address(p.port)
	if err := os.MkdirAll(p.data(), 0o700); err != nil {
		return err
	}
	one, err := newServer(ctx, g, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, process.Patience)
	defer cancel()
	if err := one.listens(ctx); err != nil {
		return errors.Join(err, one.Kill())
	}
	s.processes = append(s.processes, one)
	return nil
}

// URLs returns the URLs for clients: one, or one for each process of Versity2.
func (s *Server) URLs() []string {
	if s.stub != nil {
		return []string{s.stub.url()}
	}
	var all []string
	for _, p := range s.front() {
		all = append(all, p.url())
	}
	return all
}

// front returns the processes that clients talk to.
func (s *Server) front() []*server {
	var all []*server
	for _, p := range s.processes {
		if !p.program.hidden {
			all = append(all, p)
		}
	}
	return all
}

// Stop ends all servers. Their files stay in the directory.
func (s *Server) Stop() {
	for _, p := range s.processes {
		_ = p.Kill()
	}
	if s.stub != nil {
		s.stub.close()
	}
}

// with calls do for the process at a URL. The stub has no process.
func (s *Server) with(url string, do func(*server) error) error {
	for _, p := range s.front() {
		if p.url() == url {
			return do(p)
		}
	}
	return fmt.Errorf("no process of %s is at %s", s.Kind, url)
}

// installPatience is the time limit for fetching and compiling the tools of one kind.
const installPatience = 20 * time.Minute

// Start runs servers of a kind for the length of a test, in a directory of its own. The test fails
// if a server cannot be installed or started.
func Start(t testing.TB, k Kind) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), installPatience)
	defer cancel()
	s, err := Open(ctx, k, t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Bucket creates a new bucket for a test.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	name := "b" + strings.ToLower(rand.Text()[:12])
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	if err := s.CreateBucket(ctx, name); err != nil {
		t.Fatalf("create bucket on %s: %v", s.Kind, err)
	}
	return name
}

// server is one process of a Server, which can be started again on its files and port.
type server struct {
	process.Process
	program program
	place   place
}

func newServer(ctx context.Context, g program, p place) (*server, error) {
	command, err := g.tool.ready(ctx)
	if err != nil {
		return nil, err
	}
	if g.prepare != nil {
		if err := g.prepare(p); err != nil {
			return nil, err
		}
	}
	s := &server{program: g, place: p}
	s.Name = g.tool.name + " at " + p.address
	command = append(command, g.args(p)...)
	s.Command, s.Env, s.Dir = command, g.environ(p), p.dir
	s.Log = filepath.Join(p.dir, fmt.Sprintf("%s-%d.log", g.tool.name, p.port))
	return s, nil
}

func (s *server) url() string { return "http://" + s.place.address }

// listens starts the process and waits until it listens.
func (s *server) listens(ctx context.Context) error {
	if err := s.Begin(); err != nil {
		return err
	}
	return s.Await(ctx, func(context.Context) error {
		c, err := net.Dial("tcp", s.place.address)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}
