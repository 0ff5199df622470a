//go:build integration && unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// wrapped is a "tenure run" in its own process.
type wrapped struct {
	*testing.T
	cmd       *exec.Cmd
	out, errs guardtest.Output
}

// wrap returns a "tenure run" with a lease that does not end within a test, unless the flags set
// another.
func (h *home) wrap(flags []string, command ...string) *wrapped {
	h.Helper()
	args := append(h.args("run", "--id", "node-1", "--lease", "10m"), flags...)
	return tenureRuns(h.T, append(append(args, "--"), command...)...)
}

func tenureRuns(t *testing.T, args ...string) *wrapped {
	t.Helper()
	w := &wrapped{T: t, cmd: exec.Command(guardtest.Self(), args...)}
	w.cmd.Env = append(w.cmd.Environ(), program.Env, guardtest.AtOnce)
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.errs
	return w
}

// ignoring lets the process start with an ignored signal.
func (w *wrapped) ignoring(signal string) *wrapped {
	w.cmd.Args = append([]string{"sh", "-c", `trap "" ` + signal + `; exec "$0" "$@"`}, w.cmd.Args...)
	w.cmd.Path = "/bin/sh"
	return w
}

func (w *wrapped) start() *wrapped {
	w.Helper()
	if err := w.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = w.cmd.Process.Kill() })
	return w
}

func (w *wrapped) signal(s syscall.Signal) {
	w.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		w.Fatal(err)
	}
}

// stops asks it to end, and checks the exit code.
func (w *wrapped) stops(code int) {
	w.Helper()
	w.signal(syscall.SIGTERM)
	w.ends(code)
}

// says waits for a text on its standard error or on its command's standard output.
func (w *wrapped) says(text string) {
	w.Helper()
	wait.Succeeds(w.T, "it says "+text, func(context.Context) error {
		if said := w.errs.String() + w.out.String(); !strings.Contains(said, text) {
			return fmt.Errorf("it says:\n%s", said)
		}
		return nil
	})
}

// ends waits until it has ended, and checks the exit code. No output contains a password.
func (w *wrapped) ends(code int) {
	w.Helper()
	stop := context.AfterFunc(wait.Context(w.T), func() { _ = w.cmd.Process.Kill() })
	_ = w.cmd.Wait()
	if !stop() {
		w.Errorf("it does not end")
	}
	if got := w.cmd.ProcessState; got.ExitCode() != code {
		w.Errorf("%v, want exit code %d; it says\n%s", got, code, &w.errs)
	}
	if strings.Contains(w.errs.String(), "s3cret") {
		w.Errorf("it shows the password:\n%s", &w.errs)
	}
}

func TestRunExitsAsItsCommandDoes(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	for script, code := range map[string]int{"exit 0": 0, "kill -TERM $$": 143, "exit 121": 121} {
		h.wrap(nil, "sh", "-c", script).start().ends(code)
	}
}

func TestRunOnceEndsWhenLeadershipIsLost(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	w := h.wrap([]string{"--once"}, "sh", "-c", "echo up; exec sleep 100").start()
	w.says("up\n")
	servers.DeleteKey(t, strings.TrimSuffix(h.url, "/ELECTIONS?pristine=true"), "ELECTIONS", "billing")
	w.ends(121)
}

func TestRunOnceEndsWhenItHandsOver(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	w := h.wrap([]string{"--once"}, "sh", "-c", "echo up; exec sleep 100").start()
	w.says("up\n")
	h.await(h.join(tenure.Config{ID: "node-2", Lease: 10 * time.Minute}, nil), follows("node-1"))
	// The other one does not come back.
	h.says("hand-over", "--to", "node-2").must(t, 0, "^node-2 leads")
	w.ends(121)
}

func TestRunFailsWithoutAStore(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	wrong := strings.Replace(h.url, "s3cret", "s3cret-not", 1)
	for why, c := range map[string]struct{ url, says string }{
		"no bucket":      {strings.Replace(h.url, "ELECTIONS", "MISSING", 1), "there is no bucket MISSING"},
		"wrong password": {wrong, "***"},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := tenureRuns(t, "run", "--store", c.url, "--election", "e", "--log-level", "debug", "--", "true").start()
			w.ends(125)
			if got := w.errs.String(); !strings.Contains(got, "error: ") || !strings.Contains(got, c.says) || !strings.Contains(got, "hint: ") {
				t.Errorf("it says %s", got)
			}
		})
	}
}

func TestRunCreatesTheBucketOnRequest(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.url = strings.Replace(h.url, "ELECTIONS", "FRESH", 1)
	h.wrap([]string{"--create"}, "sh", "-c", "exit 5").start().ends(5)
}

func TestRunSetsTheVariablesOfItsCommand(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	token := func() int {
		w := h.wrap(nil, "env")
		w.cmd.Env = append(w.cmd.Env, "TENURE_TOKEN=7000000", "OTHER=a b")
		w.start().ends(0)
		got := map[string]string{}
		for line := range strings.Lines(w.out.String()) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			if _, twice := got[name]; twice {
				t.Errorf("%s is there twice", name)
			}
			got[name] = value
		}
		if got["TENURE_ELECTION"] != "billing" || got["TENURE_ID"] != "node-1" || got["OTHER"] != "a b" {
			t.Errorf("got %q", got)
		}
		n, err := strconv.Atoi(got["TENURE_TOKEN"])
		if err != nil || n == 7000000 {
			t.Errorf("the token is %q", got["TENURE_TOKEN"])
		}
		return n
	}
	if one, two := token(), token(); one <= 0 || two <= one {
		t.Errorf("token %d after %d", two, one)
	}
}

func TestRunLeavesTheStandardFilesAlone(t *testing.T) {
	t.Parallel()
	var bytes [300_000]byte
	for i := range bytes {
		bytes[i] = byte(rand.Uint32())
	}
	data := string(bytes[:])
	w := natsHome(t).wrap([]string{"--log-level", "error"}, "sh", "-c", `cat; printf "\377\0oops" >&2`)
	w.cmd.Stdin = strings.NewReader(data)
	w.start().ends(0)
	if got := w.out.String(); got != data {
		t.Errorf("%d bytes came out, of %d that went in, and they differ", len(got), len(data))
	}
	if got := w.errs.String(); got != "\377\000oops" {
		t.Errorf("on standard error: %q", got)
	}
}

func TestRunLogsInJSON(t *testing.T) {
	t.Parallel()
	w := natsHome(t).wrap([]string{"--log-format", "json", "--log-level", "debug"}, "true").start()
	w.ends(0)
	seen := map[string]map[string]any{}
	for line := range strings.Lines(w.errs.String()) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		msg, _ := event["msg"].(string)
		seen[msg] = event
	}
	begun, ended := seen["command started"], seen["command ended"]
	if pid, _ := begun["pid"].(float64); pid <= 0 || begun["term"] == nil || begun["term"] != ended["term"] || ended["code"] != 0.0 {
		t.Errorf("got %v and %v, in\n%s", begun, ended, &w.errs)
	}
	if seen["tenure: elected"] == nil || seen["tenure: released"] == nil {
		t.Errorf("the election is not logged:\n%s", &w.errs)
	}
}

func TestRunEndsWhileItConnects(t *testing.T) {
	t.Parallel()
	w := tenureRuns(t, "run", "--store", "nats://user:s3cret@127.0.0.1:1/E", "--election", "e", "--connect-timeout", "10m", "--", "true").start()
	w.says("the store cannot be reached yet")
	w.stops(0)
}

func TestRunEndsWhileItFollows(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.await(h.join(tenure.Config{ID: "node-2"}, nil), leads)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		w := h.wrap(nil, "sh", "-c", "echo up").start()
		w.says("leader=node-2")
		w.signal(s)
		w.ends(0)
		if w.out.String() != "" {
			t.Error("the command was run")
		}
	}
}

// The signal may come before tenure has read the store.
func TestRunEndsWhileItStarts(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.await(h.join(tenure.Config{ID: "node-2"}, nil), leads)
	for _, after := range []time.Duration{0, 10, 20, 30, 45, 60} {
		w := h.wrap(nil, "true").start()
		time.Sleep(after * time.Millisecond)
		w.signal(syscall.SIGTERM)
		stop := context.AfterFunc(wait.Context(t), func() { w.Error("it does not end"); _ = w.cmd.Process.Kill() })
		_ = w.cmd.Wait() // by itself or, at the very start, by the signal
		stop()
	}
}

func TestRunPassesItsSignalOnAndReleases(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	for signal, name := range map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGINT: "INT"} {
		w := h.wrap(nil, "sh", "-c", "trap 'exit 3' "+name+"; echo up; while :; do sleep 0.02; done").start()
		w.says("up\n")
		w.signal(signal)
		w.ends(3)
	}
	h.await(h.join(tenure.Config{ID: "node-2", Lease: 10 * time.Minute}, nil), leads)
}

func TestRunKillsAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	w := h.wrap([]string{"--finish-within", "1h"}, "sh", "-c", "trap 'echo heard' TERM; echo up; while :; do sleep 0.02; done").start()
	w.says("up\n")
	w.signal(syscall.SIGTERM)
	w.says("heard\n")
	w.signal(syscall.SIGINT)
	w.ends(137)
	h.await(h.join(tenure.Config{ID: "node-2", Lease: 10 * time.Minute}, nil), leads)
}

func TestRunKillsACommandThatDoesNotFinish(t *testing.T) {
	t.Parallel()
	w := natsHome(t).wrap([]string{"--finish-within", "200ms", "--stop-within", "400ms"}, "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.02; done")
	w.start().says("up\n")
	w.stops(137)
}

func TestRunPassesOtherSignalsOn(t *testing.T) {
	t.Parallel()
	w := natsHome(t).wrap(nil, "sh", "-c", "for s in HUP USR1 USR2 QUIT; do trap \"echo $s\" $s; done; echo up; while :; do sleep 0.02; done").start()
	w.says("up\n")
	for name, s := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "QUIT": syscall.SIGQUIT} {
		w.signal(s)
		w.says(name + "\n")
	}
	w.stops(143)
}

// nohup, and shells that start a background process, let it ignore signals.
func TestRunKeepsIgnoringInheritedSignals(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.await(h.join(tenure.Config{ID: "node-2"}, nil), leads)
	for name, s := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT} {
		w := h.wrap(nil, "true").ignoring(name).start()
		w.says("leader=node-2")
		w.signal(s) // it would arrive first
		w.stops(0)
		if !strings.Contains(w.errs.String(), "signal=terminated") {
			t.Errorf("%s was not ignored:\n%s", name, &w.errs)
		}
	}
}

func TestCommandKeepsIgnoringInheritedSignals(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	for _, name := range []string{"HUP", "INT"} {
		h.wrap(nil, "sh", "-c", "kill -"+name+" $$; exit 8").ignoring(name).start().ends(8)
	}
}

// A variable that the command line has overridden names another store, which "tenure status" in the
// command would ask.
func TestCommandDoesNotInheritOverriddenVariables(t *testing.T) {
	t.Parallel()
	w := natsHome(t).wrap(nil, "env")
	w.cmd.Env = append(w.cmd.Env, "TENURE_STORE=nats://other/E", "TENURE_LEASE=7s", "TENURE_ID=other", "TENURE_RENEW=50s", "TENURE_HISTORY=x")
	w.start().ends(0)
	got := "\n" + w.out.String()
	for _, none := range []string{"TENURE_STORE=", "TENURE_LEASE=", "TENURE_ID=other", "s3cret@"} {
		if strings.Contains(got, none) {
			t.Errorf("it has %s in\n%s", none, got)
		}
	}
	for _, want := range []string{"TENURE_ID=node-1", "TENURE_RENEW=50s", "TENURE_HISTORY=x", "TENURE_TOKEN="} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("it lacks %s in\n%s", want, got)
		}
	}
}

// The first election in a bucket waits, and the log has the reason.
func TestRunExplainsAVacancy(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.url = strings.Replace(h.url, "ELECTIONS?pristine=true", "FRESH", 1)
	w := h.wrap([]string{"--create", "--lease", "2s"}, "true").start()
	w.ends(0)
	waits, elected := strings.Index(w.errs.String(), "tenure: waiting"), strings.Index(w.errs.String(), "tenure: elected")
	if waits < 0 || elected < waits || !strings.Contains(w.errs.String(), "until=") || !strings.Contains(w.errs.String(), "?pristine=true") {
		t.Errorf("it says\n%s", &w.errs)
	}
}

func TestRunWarnsOfANamesake(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.await(h.join(tenure.Config{ID: "node-1", Lease: 10 * time.Minute, Tuning: tenure.Tuning{Renew: 200 * time.Millisecond}}, nil), leads)
	h.wrap([]string{"--lease", "2s"}, "true").start().says("the leader has the ID of this candidate")
}

func TestRunWarnsOfUnknownVariables(t *testing.T) {
	t.Parallel()
	w := natsHome(t).wrap([]string{"--json"}, "true")
	w.cmd.Env = append(w.cmd.Env, "TENURE_STOER=nats://h/E")
	w.start().ends(0)
	if got := w.errs.String(); strings.Count(got, "sets no flag") != 1 || !strings.Contains(got, `"variable":"TENURE_STOER"`) {
		t.Errorf("it says\n%s", got)
	}
}

// An unreachable store is logged once, and then with a count at growing intervals.
func TestRunLogsRepeatedTroubleLessOften(t *testing.T) {
	t.Parallel()
	server := servers.NATS(t)
	h := homeAt(t, server.ClientURL()+"/ELECTIONS?pristine=true")
	w := h.wrap([]string{"--lease", "2s"}, "sleep", "100").start()
	w.says("command started")
	server.Shutdown()
	w.says(" times=")
	if n := strings.Count(w.errs.String(), "tenure: trouble"); n > 10 {
		t.Errorf("%d lines:\n%s", n, &w.errs)
	}
	w.stops(0)
}
