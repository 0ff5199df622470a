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
	"errors"
	"fmt"
	"os"

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
		s.stub = newStub()
		return s, s.stub.listen(port)
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

// Kill ends the process at a URL by SIGKILL.
func (s *Server) Kill(url string) error {
	return s.with(url, (*server).Kill)
}

// Restart starts the process at a URL again, on its files, after Kill, and returns when it answers.
func (s *Server) Restart(ctx context.Context, url string) error {
	return s.with(url, func(p *server) error {
		ctx, cancel := context.WithTimeout(ctx, process.Patience)
		defer cancel()
		if err := p.listens(ctx); err != nil {
			return err
		}
		return p.answers(ctx)
	})
}

// Pause stops the process at a URL by SIGSTOP: it stays connected and silent. On Windows it is not
// supported.
func (s *Server) Pause(url string) error { return s.with(url, (*server).Pause) }

// Resume continues the process at a URL.
func (s *Server) Resume(url string) error { return s.with(url, (*server).Resume) }

// with calls do for the process at a URL. The stub has no process.
func (s *Server) with(url string, do func(*server) error) error {
	for _, p := range s.front() {
		if p.url() == url {
			return do(p)
		}
	}
	return fmt.Errorf("no process of %s is at %s", s.Kind, url)
}
