//go:build integration

package recipes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
)

// program is tenure, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tenure-recipes")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(dir) })
	c := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "tenure"), ".")
	c.Dir = filepath.Join(root, "cmd/tenure")
	if said, err := c.CombinedOutput(); err != nil {
		return "", errors.New(string(said))
	}
	return filepath.Join(dir, "tenure"), nil
})

// atEnd is called when all tests have ended.
var atEnd []func()

// exit runs tenure, and returns its exit code and its standard error.
func exit(t *testing.T, env map[string]string, args ...string) (int, string) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
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

// documented returns the command lines of tenure run in the code of all documents. A line that ends
// in a backslash continues on the next line.
func documented(t *testing.T) []recipe {
	t.Helper()
	var all []recipe
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		for _, l := range code(text(t, name)) {
			for _, args := range started(t, name, l.text) {
				all = append(all, recipe{name: fmt.Sprintf("%s:%d", name, l.number), args: args})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
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
	server := nats(t)
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
