//go:build integration

package recipes

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) {
	natsd.Main()
	if dir := os.Getenv(rootVariable); dir != "" {
		fmt.Fprintln(os.Stderr, "process 1:", enter(dir))
		os.Exit(1)
	}
	code := m.Run()
	for _, end := range atEnd {
		end()
	}
	os.Exit(code)
}

// releasing is the time that a release may take, with some retries.
const releasing = 5 * time.Second

// recipe is one documented way to start tenure run.
type recipe struct {
	name string
	args []string // the arguments after tenure
	env  map[string]string
	// stop is the time that the supervisor waits between SIGTERM and SIGKILL. It is zero for a line
	// of a document.
	stop time.Duration
}

// own returns the arguments for tenure itself.
func (r recipe) own() []string {
	if i := slices.Index(r.args, "--"); i >= 0 {
		return r.args[:i]
	}
	return r.args
}

// setting returns the value of a flag from the command line or from its variable, or "".
func (r recipe) setting(flag string) string {
	own := r.own()
	for i, arg := range own {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case name != "--"+flag:
		case joined:
			return value
		case i+1 < len(own):
			return own[i+1]
		}
	}
	return r.env["TENURE_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))]
}

// takes returns a setting that a recipe must have: its reader must be able to add up the times.
func (r recipe) takes(t *testing.T, flag string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(r.setting(flag))
	if err != nil {
		t.Fatalf("%s: --%s: %v", r.name, flag, err)
	}
	return d
}

// deployed returns the recipes that describe how tenure is stopped.
func deployed(t *testing.T) []recipe {
	t.Helper()
	return []recipe{service(t), deployment(t), leaseDeployment(t), composed(t)}
}

func TestTenureHasTimeToRelease(t *testing.T) {
	for _, r := range deployed(t) {
		t.Run(r.name, func(t *testing.T) {
			least := r.takes(t, "finish-within") + r.takes(t, "stop-within") + releasing
			if r.stop < least {
				t.Errorf("killed %v after SIGTERM, but finishing, being killed and releasing may take %v", r.stop, least)
			}
		})
	}
}

func TestNoPasswordInACommandLine(t *testing.T) {
	for _, r := range deployed(t) {
		if line := strings.Join(r.args, " "); strings.Contains(line, "--store") || strings.Contains(line, "@") {
			t.Errorf("%s: the store has a password, and is to come from TENURE_STORE: %s", r.name, line)
		}
	}
}

// program is tenure, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tenure-recipes")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(dir) })
	return command.BuildIn(context.Background(), dir, command.Tenure)
})

// atEnd is called when all tests have ended.
var atEnd []func()

// exit runs tenure, and returns its exit code and its standard error.
func exit(t *testing.T, env map[string]string, args ...string) (int, string) {
	t.Helper()
	path, err := program()
	must(t, err)
	c := exec.CommandContext(wait.Context(t), path, args...)
	c.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.Dir, "client.properties"), []byte("security.protocol=SSL\n"), 0o600); err != nil {
		t.Fatal(err) // it is the file that a document names
	}
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TENURE_") })
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	var errs bytes.Buffer
	c.Stdout, c.Stderr = &errs, &errs
	_ = c.Run()
	return c.ProcessState.ExitCode(), errs.String()
}

// documented returns the command lines of tenure run in the code of all documents but that of the
// commands, which is the help. A line that ends in a backslash continues on the next line.
func documented(t *testing.T) []recipe {
	t.Helper()
	var all []recipe
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" || name == "docs/command.md" {
			return err
		}
		for _, l := range code(text(t, name)) {
			for _, args := range started(t, name, l.text) {
				all = append(all, recipe{name: fmt.Sprintf("%s:%d", name, l.number), args: args})
			}
		}
		return nil
	})
	must(t, err)
	return all
}

// examples returns those in the command's own help.
func examples(t *testing.T) []recipe {
	t.Helper()
	code, help := exit(t, nil, "run", "--help")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, help)
	}
	_, help, _ = strings.Cut(help, "\nExamples:\n")
	help, _, _ = strings.Cut(help, "\nStore:\n") // the first group of flags
	help = strings.ReplaceAll(help, "\\\n", "")
	var all []recipe
	for l := range strings.Lines(help) {
		for _, args := range started(t, "the help", strings.TrimSpace(l)) {
			all = append(all, recipe{name: "help " + strings.Join(args, " "), args: args})
		}
	}
	return all
}

// running replaces the command that a recipe runs.
func (r recipe) running(command string) recipe {
	r.args = append(slices.Clone(r.own()), "--", command)
	return r
}

// TestEachCommandLineRuns passes each command line to the program itself. With a missing command,
// the program ends before it looks for a store, so the documented store is used. Then, for a NATS
// store, an embedded NATS server is used.
func TestEachCommandLineRuns(t *testing.T) {
	server := natsd.Alone(t).URL()
	inDocuments, inHelp := documented(t), examples(t)
	if len(inDocuments) == 0 || len(inHelp) == 0 {
		t.Errorf("%d command lines were found in documents, %d in the help", len(inDocuments), len(inHelp))
	}
	for i, r := range slices.Concat(deployed(t), inDocuments, inHelp) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			const missing = 127
			// The reader has it elsewhere.
			if r.setting("store") == "" && r.setting("context") == "" {
				r = r.with(map[string]string{"TENURE_STORE": "nats://user:password@nats/ELECTIONS"})
			}
			r = r.running("/there/is/none")
			if code, said := exit(t, r.env, r.args...); code != missing {
				t.Fatalf("exit code %d for a command that is missing: %q\n%s", code, r.args, said)
			}
			if !strings.HasPrefix(r.setting("store"), "nats://") {
				return
			}
			if r.setting("check") != "" { // its program is not here
				r = r.without("check").with(map[string]string{"TENURE_CHECK": "true"})
			}
			r = r.running("true").without("store").with(map[string]string{"TENURE_STORE": fmt.Sprintf("%s/RECIPE-%d?pristine=true", server, i), "TENURE_CREATE": "true"})
			if code, said := exit(t, r.env, r.args...); code != 0 {
				t.Errorf("exit code %d: %q\n%s", code, r.args, said)
			}
		})
	}
}

// with adds variables.
func (r recipe) with(variables map[string]string) recipe {
	env := map[string]string{}
	maps.Copy(env, r.env)
	maps.Copy(env, variables)
	r.env = env
	return r
}

// without removes a flag from the command line.
func (r recipe) without(flag string) recipe {
	var args []string
	own := r.own()
	for i := 0; i < len(own); i++ {
		switch {
		case own[i] == "--"+flag:
			i++
		case !strings.HasPrefix(own[i], "--"+flag+"="):
			args = append(args, own[i])
		}
	}
	r.args = append(args, r.args[len(own):]...)
	return r
}

// Rows of the battery support the claims of docs/run.md. docs/run-limits.md must name all rows but
// the longest and those of agents, and no other.
func TestGuideNamesTheRowsOfTheBattery(t *testing.T) {
	out, err := exec.Command("go", "run", "../battery", "-rows").Output()
	must(t, err)
	there := map[string]bool{}
	for l := range strings.Lines(string(out)) {
		if words := strings.Fields(l); len(words) > 0 && !strings.HasPrefix(words[0], "agent-") {
			there[words[0]] = true
		}
	}
	named := map[string]bool{"random": true, "footprint": true}
	for _, cells := range rows(t, "docs/run-limits.md", "| event | rows |") {
		for _, name := range regexp.MustCompile("[a-z-]+").FindAllString(cells[len(cells)-1], -1) {
			named[name] = true
			if !there[name] {
				t.Errorf("the battery has no row %s", name)
			}
		}
	}
	for name := range there {
		if !named[name] {
			t.Errorf("docs/run-limits.md does not name row %s", name)
		}
	}
}

// A program outside of the clone builds with the lines of go.mod that the README shows.
func TestReadmeShowsLinesOfGoMod(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	must(t, err)
	_, lines, _ := strings.Cut(string(readme), "```\nreplace (\n")
	lines, _, ok := strings.Cut(lines, "```")
	if !ok {
		t.Fatal("the README has no lines of go.mod")
	}
	clone, err := filepath.Abs(root)
	must(t, err)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/app\n\ngo 1.26\n\nreplace (\n" + strings.ReplaceAll(lines, "../tenure", clone),
		"main.go": "package main\n\nimport \"github.com/tenure-go/tenure/driver/natskv\"\n\nfunc main() { _ = natskv.Open }\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, line := range []string{"go mod tidy", "go build"} {
		words := strings.Fields(line)
		c := exec.Command(words[0], words[1:]...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}
