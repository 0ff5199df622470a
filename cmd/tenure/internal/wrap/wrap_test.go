//go:build unix

package wrap

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
)

func TestMain(m *testing.M) { guardtest.Main(m, guard.Main) }

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"runs": 0o755, "plain": 0o644} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode))
	}
	for name, text := range map[string]string{
		"broken": "#!/no/such/interpreter -x\n", "windows": "#!/bin/sh\r\n", "directory": "#! " + dir + "\n", "spaced": "#! /bin/sh -e\n",
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	t.Setenv("PATH", dir+":.")
	t.Chdir(t.TempDir())
	must.OK(t, os.WriteFile("here", []byte("#!/bin/sh\n"), 0o755))
	for _, c := range []struct {
		name, path, err string
		code            int
	}{
		{"runs", dir + "/runs", "", 0},
		{dir + "/runs", dir + "/runs", "", 0},
		{"./here", "./here", "", 0},
		{"here", "", "here: is in the current directory; give it as ./here", CodeNotFound},
		{"missing", "", "missing: no such command", CodeNotFound},
		{dir + "/missing", "", "missing: no such command", CodeNotFound},
		{dir + "/plain", "", "permission denied", CodeNotRunnable},
		{dir, "", "is a directory", CodeNotRunnable},
		{"broken", "", `broken: its interpreter "/no/such/interpreter" does not exist`, CodeNotRunnable},
		{"directory", "", "cannot be executed", CodeNotRunnable},
		{"spaced", dir + "/spaced", "", 0},
		{"windows", "", `its interpreter "/bin/sh\r" does not exist`, CodeNotRunnable},
	} {
		path, code, err := Find(c.name)
		if path != c.path || code != c.code || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %d, %v", c.name, path, code, err)
		}
	}
}

// A dynamically linked program whose loader is missing is explained like a script.
func TestMissingLoader(t *testing.T) {
	if loader := loaderOf(t, "/bin/sh"); loader == "" {
		t.Skip("here /bin/sh needs none")
	} else if _, _, err := Find("/bin/sh"); err != nil {
		t.Errorf("%s: %v", loader, err)
	} else {
		program, err := os.ReadFile("/bin/sh")
		must.OK(t, err)
		path := filepath.Join(t.TempDir(), "sh")
		other := strings.Replace(string(program), loader, strings.Repeat("x", len(loader)), 1)
		must.OK(t, os.WriteFile(path, []byte(other), 0o755))
		if _, code, err := Find(path); code != CodeNotRunnable || err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("got %d, %v", code, err)
		}
	}
}

func loaderOf(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	must.OK(t, err)
	defer func() { _ = f.Close() }()
	return loader(f)
}

// A shell would run it, but tenure is not a shell.
func TestScriptWithoutAnInterpreterLine(t *testing.T) {
	if runtime.GOOS != "linux" || otherFormats() {
		t.Skip("this system may know other formats")
	}
	for name, text := range map[string]string{"plain": "echo up\n", "empty": "", "bare": "#!\n"} {
		path := filepath.Join(t.TempDir(), name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o755))
		if _, code, err := Find(path); code != CodeNotRunnable || err == nil || !strings.Contains(err.Error(), "names no interpreter") {
			t.Errorf("%s: got %d, %v", name, code, err)
		}
	}
}

// A script whose interpreter was removed after the first check exists, although the system reports
// that there is no such file.
func TestInterpreterRemovedLater(t *testing.T) {
	script := filepath.Join(t.TempDir(), "job")
	must.OK(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700))
	e := explained(script, &guard.StartError{Text: "no such file or directory", Missing: true})
	if e.Missing || !strings.Contains(e.Text, `its interpreter "/no/such/interpreter" does not exist`) {
		t.Errorf("got %+v", e)
	}
	if e := explained("/bin/sh", &guard.StartError{Text: "no room", Passing: true}); !e.Passing {
		t.Errorf("got %+v", e)
	}
}

func TestPausesGrow(t *testing.T) {
	for failures, least := range []time.Duration{
		time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
	} {
		seen := map[time.Duration]bool{}
		for range 50 {
			d := pause(failures)
			if seen[d] = true; d < least || d >= least+least/4 {
				t.Fatalf("a pause of %v after %d failures", d, failures)
			}
		}
		if len(seen) < 2 {
			t.Errorf("machines that fail together restart together after %d failures", failures)
		}
	}
}

func TestFailuresInARow(t *testing.T) {
	for _, c := range []struct {
		why    string
		end    guard.Ending
		lasted time.Duration
		want   int
	}{
		{"it failed at once", guard.Ending{Code: 1}, time.Second, 4},
		{"a signal is a failure", guard.Ending{Signal: 9}, 0, 4},
		{"it ran for long", guard.Ending{Code: 1}, healthy, 0},
		{"it has done its work", guard.Ending{}, 0, 0},
	} {
		r := &commandRun{ended: &c.end, lasted: c.lasted}
		if got := r.failures(3); got != c.want {
			t.Errorf("%s: %d failures after 3, want %d", c.why, got, c.want)
		}
	}
}

func TestRestarts(t *testing.T) {
	for _, c := range []struct {
		why     string
		restart Restart
		run     commandRun
		want    bool
	}{
		{"the default", "", commandRun{own: true, ended: &guard.Ending{Code: 1}}, false},
		{"never", RestartNever, commandRun{own: true, ended: &guard.Ending{Code: 1}}, false},
		{"it failed", RestartOnFailure, commandRun{own: true, ended: &guard.Ending{Code: 1}}, true},
		{"it did its work", RestartOnFailure, commandRun{own: true, ended: &guard.Ending{}}, false},
		{"always", RestartAlways, commandRun{own: true, ended: &guard.Ending{}}, true},
		{"the guard has ended it", RestartAlways, commandRun{ended: &guard.Ending{Signal: 9}}, false},
	} {
		if got := (&Wrapper{Options: Options{Restart: c.restart}}).restarts(&c.run); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
}

// If its command ended soon, a process ends later by the missing time. With a healthy command, or
// after a signal, it ends at once.
func TestLinger(t *testing.T) {
	for why, c := range map[string]struct {
		code           int
		lasted, signal time.Duration
		least, most    time.Duration
	}{
		"it failed at once":   {code: 1, least: leastFailed, most: leastFailed * 5 / 4},
		"it failed later":     {code: 1, lasted: 2 * time.Second, least: leastFailed, most: leastFailed * 5 / 4},
		"it failed after all": {code: 1, lasted: leastFailed * 5 / 4, least: leastFailed * 5 / 4, most: leastFailed * 5 / 4},
		"it was soon done":    {least: leastDone, most: leastDone * 5 / 4},
		"a signal":            {code: 1, signal: leastFailed / 2, least: leastFailed / 2, most: leastFailed / 2},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				w := &Wrapper{Options: Options{Log: slog.New(slog.DiscardHandler)}}
				w.ctx, w.leave = context.WithCancel(t.Context())
				w.stop, w.halt = context.WithCancel(t.Context())
				defer w.leave()
				defer w.halt()
				r := &commandRun{w: w, begun: begun, ended: &guard.Ending{Code: c.code}}
				time.Sleep(c.lasted)
				w.endLater(r)
				if c.signal != 0 {
					defer time.AfterFunc(c.signal, func() { w.Hear(15) }).Stop()
				}
				w.Linger()
				if took := time.Since(begun); took < c.least || took > c.most {
					t.Errorf("it ends after %v, and not after %v to %v", took, c.least, c.most)
				}
			})
		})
	}
}

// The command was deleted. A candidate without rivals finds that once in each lease.
func TestProblemOfEachTermIsLoggedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, nil))
		w := &Wrapper{begun: time.Now()}
		for term := range 240 { // an hour
			w.complain(log.With("term", term), "command not started", "cause", errors.New("fork/exec /x: no such file or directory"))
			time.Sleep(15 * time.Second)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if n := len(lines); n < 7 || n > 10 || strings.Contains(lines[0], "times=") || !strings.Contains(lines[n-1], "times=") {
			t.Errorf("%d lines:\n%s", n, out.String())
		}
		w.complain(log, "command not started", "cause", errors.New("permission denied"))
		if !strings.Contains(out.String(), "permission denied") {
			t.Error("another cause is not logged")
		}
	})
}

// TestGiveUp: a campaign is given up, or its command begins, and never both.
func TestGiveUp(t *testing.T) {
	reason := errors.New("another candidate leads")
	given := &Wrapper{}
	given.leave = func() {
		if given.givenUp == nil {
			t.Error("the campaign ends before its reason is known: run would exit with 0")
		}
	}
	given.GiveUp(reason)
	given.GiveUp(errors.New("too late"))
	if !errors.Is(given.GivenUp(), reason) || given.begin() {
		t.Error("the command begins in a campaign that was given up, or the first reason is lost")
	}
	begun := &Wrapper{leave: func() { t.Error("the campaign ends") }}
	if !begun.begin() {
		t.Error("the command does not begin")
	}
	if begun.GiveUp(reason); begun.GivenUp() != nil {
		t.Error("a campaign is given up whose command has begun")
	}
}
