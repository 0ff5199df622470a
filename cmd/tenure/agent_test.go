//go:build integration && unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// agent starts an agent, as on a machine of its own, and returns its socket.
func (h *home) agent(name string) (w *wrapped, socket string) {
	h.Helper()
	socket = filepath.Join(h.TempDir(), name)
	w = tenureRuns(h.T, "agent", "--store", h.url, "--json", "--listen", "unix:"+socket).Start()
	w.Says(`"serving"`)
	return w, socket
}

// python starts a worker in Python.
func python(t *testing.T, socket, name, journal, mode string) *program.Process {
	t.Helper()
	client, err := filepath.Abs("../../clients/python")
	must.OK(t, err)
	p := program.Command(t, "python3", "-B", "testdata/agent_worker.py", client, socket, name, journal, mode).Start()
	p.Says("up\n")
	return p
}

// acts reads a journal. It returns the time of the first act with the last token, and of the last
// act with another one.
func acts(t *testing.T, journal string) (first, former float64, tokens int) {
	t.Helper()
	text, err := os.ReadFile(journal)
	must.OK(t, err)
	begins := map[uint64]float64{}
	ends := map[uint64]float64{}
	last := uint64(0)
	for line := range strings.Lines(string(text)) {
		var at float64
		var token uint64
		if n, _ := fmt.Sscanln(line, &at, &token); n != 2 {
			continue // it is being written
		}
		if _, seen := begins[token]; !seen {
			begins[token] = at
		}
		ends[token], last = at, max(last, token)
	}
	for token, at := range ends {
		if token != last {
			former = max(former, at)
		}
	}
	return begins[last], former, len(begins)
}

// TestAgentOfAFrozenWorker: a worker that was frozen while another one was elected acts no
// more when it goes on. One that keeps an old answer does, which shows that this test can fail.
func TestAgentOfAFrozenWorker(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"asks", "cached"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			journal := filepath.Join(t.TempDir(), "journal")
			_, one := h.agent("one")
			_, other := h.agent("other")
			a := python(t, one, "a", journal, mode)
			a.Says("leads")
			b := python(t, other, "b", journal, "asks")
			a.Signal(syscall.SIGSTOP)
			b.Says("leads")
			a.Signal(syscall.SIGCONT)
			if mode == "asks" {
				a.Says("ended")
				if first, former, _ := acts(t, journal); former > first {
					t.Errorf("it acted at %v, and the next leader at %v", former, first)
				}
				return
			}
			wait.Succeeds(t, "the worker that keeps an answer acts too late", func(context.Context) error {
				if first, former, tokens := acts(t, journal); tokens < 2 || former <= first {
					return errors.New("not yet")
				}
				return nil
			})
		})
	}
}

// TestAgentIsKilled: a lease of a killed agent runs out, and its worker follows with the agent that
// takes its place.
func TestAgentIsKilled(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	journal := filepath.Join(t.TempDir(), "journal")
	killed, one := h.agent("one")
	_, other := h.agent("other")
	a := python(t, one, "a", journal, "asks")
	a.Says("leads")
	b := python(t, other, "b", journal, "asks")
	killed.Signal(syscall.SIGKILL)
	b.Says("leads")
	a.Says("ended")
	if first, former, _ := acts(t, journal); former > first {
		t.Errorf("it acted at %v, and the next leader at %v", former, first)
	}
	tenureRuns(t, "agent", "--store", h.url, "--json", "--listen", "unix:"+one).Start().Says(`"serving"`)
	b.Signal(syscall.SIGKILL)
	wait.Succeeds(t, "the first worker leads again", func(context.Context) error {
		if strings.Count(a.Out.String(), "leads") < 2 {
			return errors.New("not yet")
		}
		return nil
	})
}

// TestAgentSocket: a socket in use, and a file that is no socket, are left alone.
func TestAgentSocket(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, used := h.agent("one")
	file := filepath.Join(t.TempDir(), "file")
	must.Write(t, file, "mine")
	for socket, want := range map[string]struct {
		code int
		text string
	}{
		used:                                     {1, "another process serves it"},
		file:                                     {1, "is no socket"},
		filepath.Join(t.TempDir(), "none", "at"): {1, "no such file or directory"},
		"":                                       {2, "names no path"},
	} {
		tenureRuns(t, "agent", "--store", h.url, "--listen", "unix:"+socket).Run().Must(t, want.code, want.text, "hint:")
	}
}
