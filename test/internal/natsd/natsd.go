// Package natsd runs NATS servers as processes of their own, alone or three as a cluster, which can
// be stopped, killed, paused, cut off from each other, and started again on their files. By hand:
// `go run ./test/internal/natsd/natsd`.
//
// The server is the one of the Go module: the program that wants one is started a second time, and
// its call of Main becomes the server. It lives no longer than the program.
package natsd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/ports"
)

// patience is how long a server may take to start: only a hang takes as long.
const patience = 5 * time.Minute

// Server is a server process.
type Server struct {
	place place
	said  said
	cmd   *exec.Cmd
	in    io.Writer
}

// place is where a server runs, each time.
type place struct {
	Dir  string
	Port int
	// For members of a cluster.
	Name   string   `json:",omitempty"`
	Inner  int      `json:",omitempty"` // the port for the others
	Routes []string `json:",omitempty"`
	Hidden bool     `json:",omitempty"` // the others use their routes alone
}

// Start runs a server on a directory.
func Start(dir string) (s *Server, err error) {
	err = onFree(ports.Free, 1, func(found []int) error {
		s = &Server{place: place{Dir: dir, Port: found[0]}}
		return s.Start()
	})
	return s, err
}

// Start runs a server that has ended once more, on its files and port.
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
	machine.Together(s.cmd) // its end of file tells a paused server nothing
	machine.Apart(s.cmd)
	if s.in, err = s.cmd.StdinPipe(); err != nil { // its end is how the server learns of ours
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

// runs reports whether the process was not ended by Kill or Stop.
func (s *Server) runs() bool { return s.cmd.ProcessState == nil }

// Name is that of a member of a cluster.
func (s *Server) Name() string { return s.place.Name }

// PID is the number of the process, which another start changes.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// URL is the address for clients. A client without a name is a user with all rights.
func (s *Server) URL() string { return s.said.URL }

// Monitor is the base URL of the server's monitoring.
func (s *Server) Monitor() string { return s.said.Monitor }
