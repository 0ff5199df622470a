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
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
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
