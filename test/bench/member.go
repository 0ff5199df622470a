package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// member is a candidate's process, as the bench sees it.
type member struct {
	id       string
	relays   relays // empty: it is connected directly
	cmd      *exec.Cmd
	commands *json.Encoder
	gone     chan struct{} // closed when its last report was read
}

// hire starts a process, and calls hear with each of its reports.
func hire(me identity, relayed bool, hear func(report)) (m *member, err error) {
	m = &member{id: me.ID, gone: make(chan struct{})}
	if relayed {
		if m.relays, err = newRelays(me.Addresses); err != nil {
			return nil, err
		}
		me.Via = m.relays.via()
	}
	encoded, err := json.Marshal(me)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m.cmd = exec.Command(program)
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

// listen ends after the last report: a pipe outlives its writer.
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

// kill sends SIGKILL, and returns when all reports of the process have been heard.
func (m *member) kill() {
	_ = m.cmd.Process.Kill()
	<-m.gone
	_ = m.cmd.Wait()
	for _, r := range m.relays {
		r.Close()
	}
}

func (m *member) pause() error  { return machine.Pause(m.cmd.Process.Pid) }
func (m *member) resume() error { return machine.Resume(m.cmd.Process.Pid) }

// relays stand between a member and its servers, by the servers' addresses.
type relays map[string]*relay.Relay

func newRelays(addresses []string) (relays, error) {
	all := relays{}
	for _, server := range addresses {
		r, err := relay.New("tcp://" + server)
		if err != nil {
			return nil, err
		}
		all[server] = r
	}
	return all, nil
}

// via returns the addresses of the relays.
func (all relays) via() map[string]string {
	found := map[string]string{}
	for server, r := range all {
		_, found[server], _ = strings.Cut(r.URL(), "//")
	}
	return found
}

// cut lets no byte pass in either direction, and leaves the connections open. The bytes are lost, or
// else they pass when the cut ends. It returns what ends the cut.
func (all relays) cut(lossy bool) (end func()) {
	begin, heal := (*relay.Relay).Hold, (*relay.Relay).Release
	if lossy {
		begin, heal = (*relay.Relay).Blackhole, (*relay.Relay).Heal
	}
	for _, r := range all {
		begin(r)
	}
	return func() {
		for _, r := range all {
			heal(r)
		}
	}
}
