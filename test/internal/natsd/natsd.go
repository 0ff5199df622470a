// Package natsd runs NATS servers as processes of their own, which can be killed and started again on their files.
//
// The server is the one of the Go module: the program that wants one is started a second time, and its call of Main
// becomes the server. It lives no longer than the program.
package natsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// patience is how long a server may take to start.
const patience = 20 * time.Second

// Server is a server process.
type Server struct {
	place place
	said  said
	cmd   *exec.Cmd
}

// place is where a server runs; the port is that of its first start.
type place struct {
	Dir  string
	Port int
	// For members of a cluster.
	Name   string   `json:",omitempty"`
	Inner  int      `json:",omitempty"` // the port for the others
	Routes []string `json:",omitempty"`
}

// said is what a server says when it is ready.
type said struct {
	URL     string
	Monitor string
	Port    int
}

// Start runs a server on a directory.
func Start(dir string) (*Server, error) {
	s := &Server{place: place{Dir: dir, Port: anyPort}}
	return s, s.Start()
}

// Start runs a server that was killed once more, on its files and port.
func (s *Server) Start() error {
	encoded, err := json.Marshal(s.place)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	s.cmd = exec.Command(program)
	s.cmd.Env = append(os.Environ(), variable+"="+string(encoded))
	s.cmd.Stderr = os.Stderr
	if _, err := s.cmd.StdinPipe(); err != nil { // its end is how the server learns of ours
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return s.hear(out)
}

func (s *Server) hear(out io.Reader) error {
	late := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	if err := json.NewDecoder(out).Decode(&s.said); err != nil {
		s.Kill()
		return fmt.Errorf("the server does not start: %w", errors.Join(err, os.ErrDeadlineExceeded))
	}
	s.place.Port = s.said.Port
	return nil
}

// Kill is the end of a process that cannot do anything about it.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// URL is where clients connect. Who gives no name is a user with all rights.
func (s *Server) URL() string { return s.said.URL }

// Monitor is the base URL of what the server says about itself.
func (s *Server) Monitor() string { return s.said.Monitor }
