package s3d

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// process is one server process, which can be started again on its files and port.
type process struct {
	program program
	place   place
	command []string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

func newProcess(ctx context.Context, g program, p place) (*process, error) {
	command, err := g.tool.ready(ctx)
	if err != nil {
		return nil, err
	}
	if g.prepare != nil {
		if err := g.prepare(p); err != nil {
			return nil, err
		}
	}
	return &process{program: g, place: p, command: append(command, g.args(p)...)}, nil
}

func (p *process) url() string { return "http://" + p.place.address }

// log returns the path of the file with the process's output.
func (p *process) log() string {
	return filepath.Join(p.place.dir, fmt.Sprintf("%s-%d.log", p.program.tool.name, p.place.port))
}

// start starts the process and waits until it listens.
func (p *process) start(ctx context.Context) error {
	out, err := os.OpenFile(p.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has its own descriptor
	p.cmd = exec.Command(p.command[0], p.command[1:]...)
	p.cmd.Dir, p.cmd.Env = p.place.dir, append(os.Environ(), p.program.environ(p.place)...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	machine.Together(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.ended = ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(ended)
	}(p.cmd)
	return p.listens(ctx)
}

func (p *process) listens(ctx context.Context) error {
	for {
		if c, err := net.Dial("tcp", p.place.address); err == nil {
			return c.Close()
		}
		select {
		case <-p.ended:
			return p.fault("ended instead of listening")
		case <-ctx.Done():
			p.kill()
			return p.fault("does not listen")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// fault returns an error with the end of the log of the process.
func (p *process) fault(what string) error {
	said, _ := os.ReadFile(p.log())
	return fmt.Errorf("%s at %s %s: %s", p.program.tool.name, p.place.address, what, tail(said))
}

// kill ends the process by SIGKILL, also a paused one. It returns when the process is gone.
func (p *process) kill() {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
}
