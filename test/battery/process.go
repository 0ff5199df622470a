package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// markVariable is in the environment of every process of a stage. So the battery finds all of them,
// whatever their parent, group or session is.
const markVariable = "TENURE_BATTERY"

// process holds what the system shows of one process of a stage.
type process struct {
	pid, parent int
	state       string
	exe         string // the path of the program, if known
	id, token   string // the values that tenure passed to a worker
}

func (p process) String() string {
	s := fmt.Sprintf("process %d (%s) of %d", p.pid, p.state, p.parent)
	if p.token != "" {
		s += fmt.Sprintf(", with token %s of %s", p.token, p.id)
	}
	return s
}

// older reports whether the process received a lower token.
func (p process) older(token uint64) bool {
	own, err := strconv.ParseUint(p.token, 10, 64)
	return err == nil && own < token
}

// processesOf returns all running processes with the mark. A process that is just ending may be
// missing. A zombie cannot act any more.
func processesOf(mark string) (all []process, err error) {
	pids, err := machine.Processes()
	for _, pid := range pids {
		if p, ok := look(pid, mark); ok && machine.Lives(pid) {
			all = append(all, p)
		}
	}
	return all, err
}

// look returns a process if it has the mark.
func look(pid int, mark string) (process, bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	environ, err := os.ReadFile(dir + "environ")
	if err != nil || !bytes.Contains(environ, []byte(markVariable+"="+mark+"\x00")) {
		return process{}, false
	}
	p := process{pid: pid}
	for v := range strings.SplitSeq(string(environ), "\x00") {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "TENURE_ID":
			p.id = value
		case "TENURE_TOKEN":
			p.token = value
		}
	}
	p.exe, _ = os.Readlink(dir + "exe")
	stat := machine.Stat(pid)
	if len(stat) < 2 {
		return process{}, false
	}
	p.state, p.parent = stat[0], machine.Parent(pid)
	return p, true
}
