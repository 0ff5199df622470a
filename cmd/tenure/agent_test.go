//go:build integration && unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// agent starts an agent, as on a machine of its own, and returns its socket.
func (h *home) agent(name string, flags ...string) (w *wrapped, socket string) {
	h.Helper()
	socket = filepath.Join(h.TempDir(), name)
	w = tenureRuns(h.T, append([]string{"agent", "--store", h.url, "--json", "--listen", "unix:" + socket}, flags...)...).Start()
	w.Says(`"serving"`)
	return w, socket
}

// workerProgram is a worker in testdata, and the directory of its client.
type workerProgram struct {
	run    []string
	client string
	waits  bool // it can wait while its event loop goes on
}

// workers do the same in several languages. .ci/clients compiles the clients.
var workers = map[string]workerProgram{
	"python":  {[]string{"python3", "-B", "testdata/agent_worker.py"}, "../../clients/python", false},
	"asyncio": {[]string{"python3", "-B", "testdata/agent_worker_asyncio.py"}, "../../clients/python", true},
	"node":    {[]string{"node", "testdata/agent_worker.mjs"}, "../../clients/node", true},
}

// eachLanguage runs a test with the workers of each.
func eachLanguage(t *testing.T, test func(t *testing.T, language string)) {
	t.Helper()
	for language := range workers {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			test(t, language)
		})
	}
}

// worker starts one.
func worker(t *testing.T, language, socket, name, journal, mode string) *program.Process {
	t.Helper()
	w := workers[language]
	client, err := filepath.Abs(w.client)
	must.OK(t, err)
	args := append(slices.Clone(w.run[1:]), client, socket, name, journal, mode)
	return program.Command(t, w.run[0], args...).Start()
}

// acts reads a journal. It returns the time of the first act with the last token, and of the last
// act with another one.
func acts(t *testing.T, journal string) (first, former float64, tokens int) {
	t.Helper()
	text, err := os.ReadFile(journal)
	if !errors.Is(err, fs.ErrNotExist) { // nothing has acted
		must.OK(t, err)
	}
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

// neverTwo checks that the worker did not act after another one was elected.
func neverTwo(t *testing.T, journal string) {
	t.Helper()
	if first, former, _ := acts(t, journal); former > first {
		t.Errorf("a worker acted at %v, and the next leader at %v", former, first)
	}
}

// TestAgentOfAFailedWorker: another worker leads after one that is frozen, killed, or hangs. The
// failed one acts no more when it goes on.
func TestAgentOfAFailedWorker(t *testing.T) {
	t.Parallel()
	for fault, signal := range map[string]syscall.Signal{"frozen": syscall.SIGSTOP, "killed": syscall.SIGKILL, "hangs": 0, "waits": 0} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			eachLanguage(t, func(t *testing.T, language string) {
				mode := "asks"
				if signal == 0 {
					mode = fault
				}
				if testing.Short() && fault == "killed" && language != "node" {
					t.Skip("the kernel does the same for each")
				}
				if mode == "waits" && !workers[language].waits {
					t.Skip("there is no event loop")
				}
				h := newHome(t)
				journal := filepath.Join(t.TempDir(), "journal")
				_, one := h.agent("one")
				_, other := h.agent("other")
				a := worker(t, language, one, "a", journal, mode)
				a.Says("leads")
				wait.Until(t, "it acts", func() bool { _, _, tokens := acts(t, journal); return tokens > 0 })
				b := worker(t, "python", other, "b", journal, "asks")
				b.Says("up")
				if signal != 0 {
					a.Signal(signal)
				}
				b.Says("leads")
				if fault == "frozen" {
					a.Signal(syscall.SIGCONT)
					a.Says("ended")
				}
				wait.Until(t, "the next leader acts", func() bool { _, _, tokens := acts(t, journal); return tokens > 1 })
				neverTwo(t, journal)
			})
		})
	}
}

// TestAgentOfAWorkerThatKeepsAnAnswer is the control: it acts too late.
func TestAgentOfAWorkerThatKeepsAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	journal := filepath.Join(t.TempDir(), "journal")
	_, one := h.agent("one")
	_, other := h.agent("other")
	a := worker(t, "python", one, "a", journal, "cached")
	a.Says("leads")
	b := worker(t, "python", other, "b", journal, "asks")
	b.Says("up")
	a.Signal(syscall.SIGSTOP)
	b.Says("leads")
	a.Signal(syscall.SIGCONT)
	wait.Succeeds(t, "the worker acts too late", func(context.Context) error {
		if first, former, tokens := acts(t, journal); tokens < 2 || former <= first {
			return errors.New("not yet")
		}
		return nil
	})
}

// TestAgentIsKilled: a lease of a killed agent runs out, and its worker follows with the agent that
// takes its place.
func TestAgentIsKilled(t *testing.T) {
	t.Parallel()
	eachLanguage(t, func(t *testing.T, language string) {
		h := newHome(t)
		journal := filepath.Join(t.TempDir(), "journal")
		killed, one := h.agent("one")
		_, other := h.agent("other")
		a := worker(t, language, one, "a", journal, "asks")
		a.Says("leads")
		b := worker(t, "python", other, "b", journal, "asks")
		b.Says("up")
		killed.Signal(syscall.SIGKILL)
		b.Says("leads")
		a.Says("ended")
		wait.Until(t, "the next leader acts", func() bool { _, _, tokens := acts(t, journal); return tokens > 1 })
		neverTwo(t, journal)
		tenureRuns(t, "agent", "--store", h.url, "--json", "--listen", "unix:"+one).Start().Says(`"serving"`)
		b.Signal(syscall.SIGKILL)
		wait.Until(t, "the first worker leads again", func() bool { return strings.Count(a.Out.String(), "leads") >= 2 })
	})
}

// TestAgentOfAWorkerThatLeaves: it hands over while it is alone, leads again, and declines. So
// another one leads.
func TestAgentOfAWorkerThatLeaves(t *testing.T) {
	t.Parallel()
	eachLanguage(t, func(t *testing.T, language string) {
		h := newHome(t)
		journal := filepath.Join(t.TempDir(), "journal")
		_, one := h.agent("one")
		a := worker(t, language, one, "a", journal, "leaves")
		a.Says("declines")
		b := worker(t, language, one, "b", journal, "asks")
		b.Says("leads")
		worker(t, language, one, "c", journal, "misuses").Says("The election cannot be held so: ")
	})
}

// TestAgentExamples: each example leads, and releases the lease when it is asked to end: otherwise
// the lease would last for an hour.
func TestAgentExamples(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w, socket := h.agent("one", "--lease", "1h")
	for _, example := range [][]string{
		{"python3", "-B", "../../clients/python/examples/worker.py"},
		{"python3", "-B", "../../clients/python/examples/worker_asyncio.py"},
		{"node", "../../clients/node/dist/examples/worker.js"},
	} {
		p := program.Command(t, example[0], append(example[1:], "unix:"+socket)...)
		p.Cmd.Env = append(p.Cmd.Env, "PYTHONPATH=../../clients/python")
		p.Start().Says("leads")
		p.Stops(0)
	}
	w.Stops(0)
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
