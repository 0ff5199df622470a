package s3d

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"github.com/tenure-go/tenure/test/internal/process"
)

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
