package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"

	"github.com/tenure-go/tenure/test/internal/relay"
)

// member is a candidate's process, as the bench sees it.
type member struct {
	id       string
	relays   relay.Set // empty: it is connected directly
	cmd      *exec.Cmd
	commands *json.Encoder
	gone     chan struct{} // closed when its last report was read
}

// hire starts a process, and calls hear with each of its reports.
func hire(me identity, relayed bool, hear func(report)) *member {
	m := &member{id: me.ID, cmd: exec.Command(must(os.Executable())), gone: make(chan struct{})}
	if relayed {
		m.relays = must(relay.NewSet(me.Addresses))
		me.Via = m.relays.Via()
	}
	m.cmd.Env = append(os.Environ(), workerVariable+"="+string(must(json.Marshal(me))))
	m.cmd.Stderr = os.Stderr
	m.commands = json.NewEncoder(must(m.cmd.StdinPipe()))
	out := must(m.cmd.StdoutPipe())
	check(m.cmd.Start())
	go m.listen(out, hear)
	return m
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

// kill sends SIGKILL, and returns when all reports of the process have been heard.
func (m *member) kill() {
	_ = m.cmd.Process.Kill()
	<-m.gone
	_ = m.cmd.Wait()
	m.relays.Close()
}

func (m *member) pid() int { return m.cmd.Process.Pid }
