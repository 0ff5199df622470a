//go:build integration && unix

package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/agentworker"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/internal/witness"
)

// agent starts an agent, as on a machine of its own, and returns its socket.
func (h *home) agent(name string, flags ...string) (w *wrapped, socket string) {
	h.Helper()
	socket = filepath.Join(h.TempDir(), name)
	w = tenureRuns(h.T, append([]string{"agent", "--store", h.url, "--json", "--listen", "unix:" + socket}, flags...)...).Start()
	w.Says(`"serving"`)
	return w, socket
}

// languages are those of the workers without Java, each with whether its worker can wait while its
// event loop goes on.
var languages = map[string]bool{"python": false, "asyncio": true, "node": true}

// eachLanguage runs a test with the workers of each.
func eachLanguage(t *testing.T, test func(t *testing.T, language string)) {
	t.Helper()
	for language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			test(t, language)
		})
	}
}

// worker starts a worker.
func worker(t *testing.T, language, socket, name, journal, mode string) *program.Process {
	t.Helper()
	run, err := agentworker.Program(t.Context(), "../..", language, "")
	must.OK(t, err)
	return workerRun(run).start(t, socket, name, journal, mode)
}

// workerRun is the command line of a worker.
type workerRun []string

func (run workerRun) start(t *testing.T, socket, name, journal, mode string) *program.Process {
	t.Helper()
	args := append(slices.Clone(run[1:]), "unix:"+socket, name, journal, "3000", mode)
	return program.Command(t, run[0], args...).Start()
}

// judged judges a journal by the times before the questions whether a worker may act.
func judged(t *testing.T, journal string) witness.Verdict {
	t.Helper()
	r, err := witness.Follow(journal)
	if errors.Is(err, fs.ErrNotExist) { // nothing has acted
		return witness.Verdict{}
	}
	must.OK(t, err)
	defer func() { _ = r.Close() }()
	records, err := r.Next()
	must.OK(t, err)
	return witness.ByTime(records)
}

// acted waits until so many leaders have acted.
func acted(t *testing.T, journal string, leaders int) {
	t.Helper()
	wait.Until(t, "it acts", func() bool { return judged(t, journal).Terms >= leaders })
}

// neverTwo checks that no worker acted after another one was elected.
func neverTwo(t *testing.T, journal string) {
	t.Helper()
	if v := judged(t, journal); !v.Safe() {
		t.Error(v)
	}
}

// actsTooLate waits until a worker has acted after another one was elected.
func actsTooLate(t *testing.T, journal string) {
	t.Helper()
	wait.Until(t, "it acts too late", func() bool { return judged(t, journal).Stale > 0 })
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
				if mode == "waits" && !languages[language] {
					t.Skip("there is no event loop")
				}
				h := newHome(t)
				journal := filepath.Join(t.TempDir(), "journal")
				_, one := h.agent("one")
				_, other := h.agent("other")
				a := worker(t, language, one, "c1", journal, mode)
				a.Says("leads")
				acted(t, journal, 1)
				b := worker(t, "python", other, "c2", journal, "asks")
				b.Says("up")
				if signal != 0 {
					a.Signal(signal)
				}
				b.Says("leads")
				if fault == "frozen" {
					a.Signal(syscall.SIGCONT)
					a.Says("ended")
				}
				acted(t, journal, 2)
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
	a := worker(t, "python", one, "c1", journal, "cached")
	a.Says("leads")
	b := worker(t, "python", other, "c2", journal, "asks")
	b.Says("up")
	a.Signal(syscall.SIGSTOP)
	b.Says("leads")
	a.Signal(syscall.SIGCONT)
	actsTooLate(t, journal)
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
		a := worker(t, language, one, "c1", journal, "asks")
		a.Says("leads")
		b := worker(t, "python", other, "c2", journal, "asks")
		b.Says("up")
		killed.Signal(syscall.SIGKILL)
		b.Says("leads")
		a.Says("ended")
		acted(t, journal, 2)
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
		a := worker(t, language, one, "c1", journal, "leaves")
		a.Says("declines")
		b := worker(t, language, one, "c2", journal, "asks")
		b.Says("leads")
		worker(t, language, one, "c3", journal, "misuses").Says("The election cannot be held so: ")
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
