package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// member is a worker as the parent sees it: a process, the way to tell it something, and perhaps relays between it and
// the servers.
type member struct {
	id       string
	relay    relays   // empty: it is connected directly
	counter  *counter // nil: nobody counts
	cmd      *exec.Cmd
	commands *json.Encoder
	gone     chan struct{} // closed when its last report was read
}

// hire starts a process; hear is called with each of its reports.
func hire(me identity, hear func(report)) (*member, error) {
	encoded, err := json.Marshal(me)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &member{id: me.ID, cmd: exec.Command(program), gone: make(chan struct{})}
	m.cmd.Env = append(os.Environ(), workerVariable+"="+string(encoded))
	m.cmd.Stderr = os.Stderr
	in, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.commands = json.NewEncoder(in)
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go m.listen(out, hear)
	return m, nil
}

// listen ends when the process does, after its last report: a pipe outlives its writer.
func (m *member) listen(out io.Reader, hear func(report)) {
	defer close(m.gone)
	for lines := json.NewDecoder(out); ; {
		var r report
		if lines.Decode(&r) != nil {
			return
		}
		hear(r)
	}
}

func (m *member) tell(c command) error { return m.commands.Encode(c) }

// kill is SIGKILL. After it all that the process ever reported has been heard.
func (m *member) kill() {
	_ = m.cmd.Process.Kill()
	<-m.gone
	_ = m.cmd.Wait()
	m.relay.close()
	if m.counter != nil {
		m.counter.close()
	}
}

func (m *member) pause() error  { return machine.Pause(m.cmd.Process.Pid) }
func (m *member) resume() error { return machine.Resume(m.cmd.Process.Pid) }
