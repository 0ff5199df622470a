//go:build integration && unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/wait"
)

const (
	javaClient = "../../clients/java/agent/src/main/java/io/github/tenurego/agent"
	javaWorker = "testdata/AgentWorker.java"
)

// javaClasses compiles sources together with the Java client, and returns the directory of classes.
func javaClasses(t *testing.T, sources ...string) string {
	t.Helper()
	client, err := filepath.Glob(javaClient + "/*.java")
	must.OK(t, err)
	classes := t.TempDir()
	args := append([]string{"-J-XX:TieredStopAtLevel=1", "--release", "17", "-Xlint:all", "-Werror", "-d", classes}, client...)
	out, err := exec.Command("javac", append(args, sources...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return classes
}

// java returns a program in Java that has not begun.
func java(t *testing.T, classes string, args ...string) *program.Process {
	t.Helper()
	small := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx64m", "-cp", classes}
	return program.Command(t, "java", append(small, args...)...)
}

// TestAgentJava: of workers in Java that are frozen, or whose agents are killed, none acts after
// another one was elected. One that keeps an old answer does, which shows that this test can fail.
func TestAgentJava(t *testing.T) {
	t.Parallel()
	classes := javaClasses(t, javaWorker)
	worker := func(t *testing.T, socket, name, journal, mode string) *program.Process {
		p := java(t, classes, "AgentWorker", socket, name, journal, mode).Start()
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
			a := worker(t, one, "a", journal, c.mode)
			a.Says("leads")
			b := worker(t, other, "b", journal, "asks")
			c.fault(a, agent.Process)
			b.Says("leads")
			c.after(a)
			if c.mode == "cached" {
				wait.Succeeds(t, "the worker that keeps an answer acts too late", func(context.Context) error {
					if first, former, tokens := acts(t, journal); tokens < 2 || former <= first {
						return errors.New("not yet")
					}
					return nil
				})
				return
			}
			a.Says("ended")
			if first, former, _ := acts(t, journal); former > first {
				t.Errorf("it acted at %v, and the next leader at %v", former, first)
			}
			if c.why != "frozen" {
				tenureRuns(t, "agent", "--store", h.url, "--json", "--listen", "unix:"+one).Start().Says(`"serving"`)
			}
			b.Signal(syscall.SIGKILL)
			wait.Succeeds(t, "the first worker leads again", func(context.Context) error {
				if strings.Count(a.Out.String(), "leads") < 2 {
					return errors.New("not yet")
				}
				return nil
			})
		})
	}
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
