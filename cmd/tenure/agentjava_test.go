//go:build integration && unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/agentworker"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// javaWorker compiles the worker in Java.
func javaWorker(t *testing.T) workerRun {
	t.Helper()
	run, err := agentworker.Program(t.Context(), "../..", "java", t.TempDir())
	must.OK(t, err)
	return run
}

// TestAgentJava: of workers in Java that are frozen, or whose agents are killed, none acts after
// another one was elected. One that keeps an old answer does, which shows that this test can fail.
func TestAgentJava(t *testing.T) {
	t.Parallel()
	run := javaWorker(t)
	worker := func(t *testing.T, socket, name, journal, mode string) *program.Process {
		p := run.start(t, socket, name, journal, mode)
		p.Says("up\n")
		return p
	}
	for _, c := range []struct {
		why, mode string
		fault     func(worker, agent *program.Process)
		after     func(worker *program.Process)
	}{
		{"frozen", "asks",
			func(w, _ *program.Process) { w.Signal(syscall.SIGSTOP) },
			func(w *program.Process) { w.Signal(syscall.SIGCONT) }},
		{"frozen, and keeps an answer", "cached",
			func(w, _ *program.Process) { w.Signal(syscall.SIGSTOP) },
			func(w *program.Process) { w.Signal(syscall.SIGCONT) }},
		{"its agent is killed", "asks",
			func(_, a *program.Process) { a.Signal(syscall.SIGKILL) },
			func(*program.Process) {}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			journal := filepath.Join(t.TempDir(), "journal")
			agent, one := h.agent("one")
			_, other := h.agent("other")
			a := worker(t, one, "c1", journal, c.mode)
			a.Says("leads")
			b := worker(t, other, "c2", journal, "asks")
			c.fault(a, agent.Process)
			b.Says("leads")
			c.after(a)
			if c.mode == "cached" {
				actsTooLate(t, journal)
				return
			}
			a.Says("ended")
			neverTwo(t, journal)
			if c.why != "frozen" {
				tenureRuns(t, "agent", "--store", h.url, "--json", "--listen", "unix:"+one).Start().Says(`"serving"`)
			}
			b.Signal(syscall.SIGKILL)
			wait.Until(t, "the first worker leads again", func() bool { return strings.Count(a.Out.String(), "leads") >= 2 })
		})
	}
}

// TestAgentJavaGivesUpConnecting: a connection by TCP that the system does not accept is given up.
func TestAgentJavaGivesUpConnecting(t *testing.T) {
	t.Parallel()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must.OK(t, err)
	defer func() { _ = syscall.Close(fd) }()
	must.OK(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must.OK(t, syscall.Listen(fd, 0)) // for one connection
	bound, err := syscall.Getsockname(fd)
	must.OK(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	only, err := net.Dial("tcp", address)
	must.OK(t, err)
	defer func() { _ = only.Close() }()
	run := javaWorker(t)
	p := program.Command(t, run[0], append(run[1:], "http://"+address, "c1", "none", "3000", "asks")...).Start()
	p.Says("the agent did not answer within PT2S")
}

// TestShedLock runs the tests of ShedLock with its provider, two agents and a pristine store.
func TestShedLock(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	t.Parallel()
	h := newHome(t)
	_, one := h.agent("one")
	_, other := h.agent("other")
	build := t.TempDir() // Maven writes next to the sources
	must.OK(t, os.CopyFS(build, os.DirFS("../../clients/java")))
	out, err := exec.CommandContext(wait.Context(t), "mvn", "-q", "-B", "-f", build, "test", "-Dtenure.lease=2000",
		"-Dtenure.agent=unix:"+one, "-Dtenure.other=unix:"+other).CombinedOutput()
	if err != nil {
		t.Fatalf("mvn: %v\n%s", err, out)
	}
}
