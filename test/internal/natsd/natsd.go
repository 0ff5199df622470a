// Package natsd runs NATS servers as processes of their own, alone or three as a cluster. Tests can
// stop, kill and pause them, cut them off from each other, and start them again on their files. To
// run them by hand: `go run ./test/internal/natsd/natsd`.
//
// The server is the Go module nats-server. The test program starts itself a second time as the
// server: there its call of Main never returns. The server ends with the program at the latest.
package natsd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// patience is the time limit for the start of a server. Only a server that hangs takes longer.
const patience = 5 * time.Minute

// Server is a server process.
type Server struct {
	place place
	said  said
	cmd   *exec.Cmd
	in    io.Writer
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
	s.cmd = exec.Command(program)
	s.cmd.Env = append(os.Environ(), variable+"="+string(encoded))
	s.cmd.Stderr = os.Stderr
	machine.Together(s.cmd) // a paused server does not notice the end of its input
	machine.Apart(s.cmd)
	if s.in, err = s.cmd.StdinPipe(); err != nil { // the server ends when its input does
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
	var heard said
	err := json.NewDecoder(out).Decode(&heard)
	switch inTime := late.Stop(); {
	case !inTime:
		err = os.ErrDeadlineExceeded
	case err == nil && heard.Refusal != "":
		err = heard.Refusal
	}
	if err != nil {
		s.Kill()
		return fmt.Errorf("the server does not start: %w", err)
	}
	s.said = heard
	return nil
}

// runs reports whether neither Kill nor Stop has ended the process.
func (s *Server) runs() bool { return s.cmd.ProcessState == nil }

// Name returns the name of a member of a cluster.
func (s *Server) Name() string { return s.place.Name }

// PID returns the number of the process. Each start changes it.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// URL returns the address for clients. A client without a user name has all rights.
func (s *Server) URL() string { return s.said.URL }

// Monitor returns the base URL of the server's monitoring.
func (s *Server) Monitor() string { return s.said.Monitor }
