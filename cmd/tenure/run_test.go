//go:build integration && unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/slots"
)

// wrapped is a "tenure run" in its own process.
type wrapped struct{ *program.Process }

// wrap returns a "tenure run" with a lease that does not end within a test, unless the flags set
// another.
func (h *home) wrap(flags []string, command ...string) *wrapped {
	h.Helper()
	args := append(h.args("run", "--id", "node-1", "--lease", "10m"), flags...)
	return tenureRuns(h.T, append(append(args, "--"), command...)...)
}

func tenureRuns(t *testing.T, args ...string) *wrapped {
	t.Helper()
	return &wrapped{program.Command(t, guardtest.Self(), args...)}
}

// Start starts the process.
func (w *wrapped) Start() *wrapped { w.Process.Start(); return w }

// ignoring lets the process start with an ignored signal.
func (w *wrapped) ignoring(signal string) {
	w.Cmd.Args = append([]string{"sh", "-c", `trap "" ` + signal + `; exec "$0" "$@"`}, w.Cmd.Args...)
	w.Cmd.Path = "/bin/sh"
}

// loop is the end of a script that says that it is up and goes on until a signal ends it.
const loop = "echo up; while :; do sleep 0.02; done"

// TestRunEndsWithItsCommand: each exit code is that of the command, which hears of the signals. Run
// releases, so another candidate leads long before the lease would end.
func TestRunEndsWithItsCommand(t *testing.T) {
	t.Parallel()
	type heard struct {
		signal syscall.Signal
		says   string // empty: the signal is the last one
	}
	forever := []string{"--finish-within", "1h"}
	for why, c := range map[string]struct {
		flags   []string
		script  string
		signals []heard
		code    int
		ignored string
	}{
		"success":                   {script: "exit 0"},
		"its own code":              {script: "exit 121", code: 121},
		"a signal":                  {script: "kill -TERM $$", code: 143},
		"SIGTERM is passed on":      {script: "trap 'exit 3' TERM; " + loop, signals: []heard{{syscall.SIGTERM, ""}}, code: 3},
		"SIGINT is passed on":       {script: "trap 'exit 3' INT; " + loop, signals: []heard{{syscall.SIGINT, ""}}, code: 3},
		"a second signal kills":     {forever, "trap 'echo heard' TERM; " + loop, []heard{{syscall.SIGTERM, "heard\n"}, {syscall.SIGINT, ""}}, 137, ""},
		"a command does not finish": {[]string{"--finish-within", "300ms", "--stop-within", "400ms"}, "trap '' TERM; " + loop, []heard{{syscall.SIGTERM, ""}}, 137, ""},
		"ignored SIGHUP is no end":  {script: "kill -HUP $$; exit 8", code: 8, ignored: "HUP"},
		"ignored SIGINT is no end":  {script: "kill -INT $$; exit 8", code: 8, ignored: "INT"},
		"other signals are no order": {nil, "for s in HUP USR1 USR2 QUIT; do trap \"echo $s\" $s; done; " + loop, []heard{
			{syscall.SIGHUP, "HUP\n"}, {syscall.SIGUSR1, "USR1\n"}, {syscall.SIGUSR2, "USR2\n"}, {syscall.SIGQUIT, "QUIT\n"}, {syscall.SIGTERM, ""},
		}, 143, ""},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			w := h.wrap(c.flags, "sh", "-c", c.script)
			if c.ignored != "" {
				w.ignoring(c.ignored)
			}
			w.Start()
			for i, s := range c.signals {
				if i == 0 {
					w.Says("up\n")
				}
				w.Signal(s.signal)
				w.Says(s.says)
			}
			asked := time.Now()
			w.Ends(c.code)
			if took := time.Since(asked); why == "a command does not finish" && took < 450*time.Millisecond {
				t.Errorf("it was killed after %v", took)
			}
			h.await(h.join(tenure.Config{ID: "node-2", Lease: 10 * time.Minute}, nil), leads)
		})
	}
}

// TestRunGivesUp: the command is not run unless this candidate is elected in time. The last line
// says why.
func TestRunGivesUp(t *testing.T) {
	t.Parallel()
	led := func(h *home) { h.await(h.join(tenure.Config{ID: "node-2"}, nil), leads) }
	crashed := func(h *home) { h.put(record("node-2", 7, time.Hour, time.Now(), "")) }
	for why, c := range map[string]struct {
		before func(*home)
		store  string
		flags  []string
		code   int
		says   string
	}{
		"another leads, no wait":    {before: led, flags: []string{"--no-wait"}, code: 122, says: "node-2 leads, in term "},
		"another leads":             {before: led, flags: []string{"--wait", "8s"}, code: 122, says: "node-2 leads, in term "},
		"the leader crashed":        {before: crashed, flags: []string{"--no-wait"}, code: 122, says: "node-2 leads, in term 7"},
		"nobody is known":           {store: "sqlite:", flags: []string{"--no-wait"}, code: 122, says: "no record shows"},
		"nobody is known in time":   {store: "sqlite:", flags: []string{"--wait", "8s"}, code: 122, says: "no record shows"},
		"the store does not answer": {store: "nats://127.0.0.1:1/E", flags: []string{"--wait", "1s"}, code: 125, says: "has not answered within 1s"},
		"released": {before: func(h *home) {
			h.put(record("node-2", 7, time.Hour, time.Now(), `,"released":true`))
		}, flags: []string{"--no-wait"}},
		"the first one":   {flags: []string{"--no-wait"}},
		"in time":         {flags: []string{"--wait", "1h"}},
		"both are a slip": {flags: []string{"--wait", "1h", "--no-wait"}, code: 125, says: "--wait is 1h0m0s"},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			if c.store == "sqlite:" { // not known to be new
				h = homeAt(t, "sqlite:"+filepath.Join(t.TempDir(), "elections.db"))
			} else if c.store != "" {
				h.url = c.store
			}
			if c.before != nil {
				c.before(h)
			}
			w := h.wrap(c.flags, "sh", "-c", "echo ran").Start()
			w.Ends(c.code)
			if ran := w.Out.String() == "ran\n"; ran != (c.code == 0) {
				t.Errorf("the command ran: %v", ran)
			}
			if !strings.Contains(w.Errs.String(), c.says) {
				t.Errorf("it says\n%s\nwithout %q", &w.Errs, c.says)
			}
		})
	}
}

// TestRunSlots: two of three candidates run the command, in different slots. When one has ended,
// the third gets its slot.
func TestRunSlots(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	start := func(id string) *wrapped { // the lease bounds the time until the third one reads
		return h.wrap([]string{"--slots", "2", "--id", id, "--lease", "10s"},
			"sh", "-c", `echo "$TENURE_ELECTION $TENURE_SLOT"; exec sleep 100`).Start()
	}
	slot := func(w *wrapped) int { // the last one that the command has had
		lines := strings.Fields(w.Out.String())
		if len(lines) < 2 {
			return 0
		}
		n, _ := strconv.Atoi(lines[len(lines)-1])
		if name := lines[len(lines)-2]; !strings.HasSuffix(name, slots.Election("", n)) {
			t.Errorf("slot %d of %s", n, name)
		}
		return n
	}
	first, second := start("node-1"), start("node-2")
	wait.Until(t, "two candidates have a slot each", func() bool { return slot(first)+slot(second) == 3 })
	third, free := start("node-3"), slot(first)
	first.Signal(syscall.SIGTERM)
	wait.Until(t, "the third one has the free slot", func() bool { return slot(third) == free })
}

// TestRunGivesUpWithoutAnswer: a store that answers only the first read ends the campaign, too. The
// exit code tells it from a store where another candidate leads.
func TestRunGivesUpWithoutAnswer(t *testing.T) {
	t.Parallel()
	unavailable := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	stalled := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for why, c := range map[string]struct {
		then http.HandlerFunc
		flag string
		says string
	}{
		"no wait":         {unavailable, "--no-wait", "the command was not run: "},
		"in time":         {unavailable, "--wait=2s", "has not answered within 2s"},
		"no answer ever":  {stalled, "--wait=2s", "has not answered within 2s"},
		"no wait for one": {stalled, "--no-wait", "the command was not run: "},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			var read atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if read.Swap(true) {
					c.then(w, r)
					return
				}
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
			}))
			t.Cleanup(server.Close)
			store := "s3://bucket?region=r&endpoint=" + server.URL
			w := tenureRuns(t, "run", "--store", store, "--election", "billing", "--lease", "15s", c.flag, "--", "echo", "ran")
			w.Cmd.Env = append(w.Cmd.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b")
			w.Start().Ends(125)
			if says := w.Errs.String(); w.Out.String() != "" || !strings.Contains(says, c.says) || strings.Contains(says, "%!") {
				t.Errorf("it says\n%s\nwithout %q, or the command ran", says, c.says)
			}
		})
	}
}

func TestRunOnceEndsWhenItHandsOver(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.wrap([]string{"--once"}, "sh", "-c", "echo up; exec sleep 100").Start()
	w.Says("up\n")
	h.await(h.join(tenure.Config{ID: "node-2", Lease: 10 * time.Minute}, nil), follows("node-1"))
	// The other one does not come back.
	h.says("hand-over", "--to", "node-2").Must(t, 0, "^node-2 leads")
	w.Ends(121)
}

// A variable that the command line has overridden names another store, which "tenure status" in the
// command would ask. So the command does not inherit it.
func TestRunSetsTheVariablesOfItsCommand(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	token := func() int {
		w := h.wrap(nil, "env")
		w.Cmd.Env = append(w.Cmd.Env, "TENURE_TOKEN=7000000", "OTHER=a b", "TENURE_STORE=nats://other/E", "TENURE_LEASE=7s", "TENURE_ID=other",
			"TENURE_RENEW=50s", "TENURE_HISTORY=x")
		w.Start().Ends(0)
		got := map[string]string{}
		for line := range strings.Lines(w.Out.String()) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			if _, twice := got[name]; twice {
				t.Errorf("%s is there twice", name)
			}
			got[name] = value
		}
		for name, want := range map[string]string{
			"TENURE_ELECTION": "billing", "TENURE_ID": "node-1", "OTHER": "a b", "TENURE_STORE": "", "TENURE_LEASE": "", "TENURE_RENEW": "50s", "TENURE_HISTORY": "x",
		} {
			if got[name] != want {
				t.Errorf("%s is %q, want %q", name, got[name], want)
			}
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
	w := newHome(t).wrap([]string{"--log-level", "error"}, "sh", "-c", `cat; printf "\377\0oops" >&2`)
	w.Cmd.Stdin = strings.NewReader(data)
	w.Start().Ends(0)
	if got := w.Out.String(); got != data {
		t.Errorf("%d bytes came out, of %d that went in, and they differ", len(got), len(data))
	}
	if got := w.Errs.String(); got != "\377\000oops" {
		t.Errorf("on standard error: %q", got)
	}
}

func TestRunLogsInJSON(t *testing.T) {
	t.Parallel()
	w := newHome(t).wrap([]string{"--log-format", "json", "--log-level", "debug"}, "true")
	w.Cmd.Env = append(w.Cmd.Env, "TENURE_STOER=nats://h/E")
	w.Start().Ends(0)
	seen := map[string]map[string]any{}
	for line := range strings.Lines(w.Errs.String()) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		msg, _ := event["msg"].(string)
		seen[msg] = event
	}
	begun, ended := seen["command started"], seen["command ended"]
	if pid, _ := begun["pid"].(float64); pid <= 0 || begun["term"] == nil || begun["term"] != ended["term"] || ended["code"] != 0.0 {
		t.Errorf("got %v and %v, in\n%s", begun, ended, &w.Errs)
	}
	if seen["tenure: elected"] == nil || seen["tenure: released"] == nil {
		t.Errorf("the election is not logged:\n%s", &w.Errs)
	}
	if n := strings.Count(w.Errs.String(), `"variable":"TENURE_STOER"`); n != 1 {
		t.Errorf("it warns %d times of an unknown variable:\n%s", n, &w.Errs)
	}
}

func TestRunEndsWhileItConnects(t *testing.T) {
	t.Parallel()
	w := tenureRuns(t, "run", "--store", "nats://user:s3cret@127.0.0.1:1/E", "--election", "e", "--connect-timeout", "10m", "--", "true").Start()
	w.Says("the store cannot be reached yet")
	w.Stops(0)
}

// nohup, and shells that start a background process, let it ignore signals.
func TestRunEndsWhileItFollows(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.await(h.join(tenure.Config{ID: "node-2"}, nil), leads)
	for _, c := range []struct {
		signal  syscall.Signal
		ignored string
	}{
		{syscall.SIGTERM, ""}, {syscall.SIGINT, ""}, {syscall.SIGHUP, ""}, {syscall.SIGQUIT, ""}, {syscall.SIGHUP, "HUP"}, {syscall.SIGINT, "INT"},
	} {
		w := h.wrap(nil, "sh", "-c", "echo up")
		if c.ignored != "" {
			w.ignoring(c.ignored)
		}
		w.Start()
		w.Says("leader=node-2")
		w.Signal(syscall.SIGUSR1) // no command runs that it could be for
		w.Signal(c.signal)
		last := c.signal
		if c.ignored != "" {
			last = syscall.SIGTERM
			w.Signal(last) // the other one would arrive first
		}
		w.Ends(0)
		if w.Out.String() != "" {
			t.Error("the command was run")
		}
		if !strings.Contains(w.Errs.String(), "signal="+last.String()) {
			t.Errorf("%v did not end it:\n%s", last, &w.Errs)
		}
	}
}

// The signal may come before tenure has read the store.
func TestRunEndsWhileItStarts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.await(h.join(tenure.Config{ID: "node-2"}, nil), leads)
	for _, after := range []time.Duration{0, 10, 20, 30, 45, 60} {
		w := h.wrap(nil, "true").Start()
		time.Sleep(after * time.Millisecond)
		w.Signal(syscall.SIGTERM)
		stop := context.AfterFunc(wait.Context(t), func() { w.Error("it does not end"); _ = w.Cmd.Process.Kill() })
		_ = w.Cmd.Wait() // by itself or, at the very start, by the signal
		stop()
	}
}

// The first election in a store that run has made waits, and the log has the reason.
func TestRunExplainsAVacancy(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.url = strings.Replace(h.url, "elections.db?pristine=true", "fresh.db", 1)
	w := h.wrap([]string{"--create", "--lease", "2s"}, "true").Start()
	w.Ends(0)
	waits, elected := strings.Index(w.Errs.String(), "tenure: waiting"), strings.Index(w.Errs.String(), "tenure: elected")
	if waits < 0 || elected < waits || !strings.Contains(w.Errs.String(), "until=") || !strings.Contains(w.Errs.String(), "?pristine=true") {
		t.Errorf("it says\n%s", &w.Errs)
	}
}

func TestRunWarnsOfANamesake(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.await(h.join(tenure.Config{ID: "node-1", Lease: 10 * time.Minute, Tuning: tenure.Tuning{Renew: 200 * time.Millisecond}}, nil), leads)
	h.wrap([]string{"--lease", "2s"}, "true").Start().Says("the leader has the ID of this candidate")
}

// Supervised machines with a command that fails at once take turns: each waits some seconds before
// it ends, and has released before.
func TestFailingCommandDoesNotMoveLeadershipConstantly(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.wrap(nil, "sh", "-c", "exit 1").Start()
	w.Says("the command ended soon after its start")
	h.await(h.join(tenure.Config{ID: "node-2", Lease: 10 * time.Minute}, nil), leads)
	w.Stops(1)
}

func TestRunRestartsItsCommand(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := filepath.Join(t.TempDir(), "ran")
	w := h.wrap([]string{"--restart", "on-failure"}, "sh", "-c", "echo $TENURE_TOKEN $TENURE_ID; test -e $0 && exit 0; touch $0; exit 7", file).Start()
	w.Ends(0)
	if runs := strings.Split(strings.TrimSpace(w.Out.String()), "\n"); len(runs) != 2 || runs[0] != runs[1] {
		t.Errorf("the runs got %q", runs)
	}
	if n := strings.Count(w.Errs.String(), "tenure: elected"); n != 1 {
		t.Errorf("elected %d times:\n%s", n, &w.Errs)
	}
}
