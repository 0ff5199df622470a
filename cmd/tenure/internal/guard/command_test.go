//go:build integration && unix

package guard

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
)

// One guard runs one command after the other.
func TestEventsReportTheEndOfACommand(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		for script, want := range map[string]Ending{
			"exit 0": {}, "exit 7": {Code: 7}, "kill -9 $$": {Signal: 9}, "kill -15 $$": {Signal: 15}, "exit 255": {Code: 255},
		} {
			r := c.guard.Run(shell(script), c.lease(long), long)
			c.started(r)
			c.ends(r, want)
		}
	})
}

// Arguments, environment and file names need not be text.
func TestNonTextBytesReachTheCommand(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		dir := guardtest.Dir(t)
		file := filepath.Join(dir, "sh\xff")
		if err := os.Symlink("/bin/sh", file); err != nil {
			t.Skip("the file system wants text: ", err)
		}
		env := []string{"X=a\377b\xc3", "OUT=" + filepath.Join(dir, "out"), "EMPTY="}
		args := []string{"s\xfeh", "-c", `printf '%s\n' "$0" "$1" "$#" "$X" "${EMPTY-none}" "${PATH_NOT_GIVEN-none}" >"$OUT"`, "c\376\x01", "", "\xed\xa0\x80"}
		r := c.guard.Run(NewCommand(file, args, env), c.lease(long), long)
		c.started(r)
		c.ends(r, Ending{})
		got, err := os.ReadFile(filepath.Join(dir, "out"))
		if want := "c\376\x01\n\n2\na\377b\xc3\n\nnone\n"; err != nil || string(got) != want {
			t.Errorf("got %q %v, want %q", got, err, want)
		}
	})
}

func TestCommandSharesTheCandidatesOutput(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		out, in := os.Stdout, os.Stdin
		defer func() { os.Stdout, os.Stdin = out, in }()
		os.Stdout = file(t, "out", "")
		os.Stdin = file(t, "in", "\x00\xff\n")
		c := newCandidate(t)
		r := c.guard.Run(NewCommand("/bin/cat", []string{"cat"}, nil), c.lease(long), long)
		c.started(r)
		c.ends(r, Ending{})
		if got, err := os.ReadFile(os.Stdout.Name()); err != nil || !bytes.Equal(got, []byte("\x00\xff\n")) {
			t.Errorf("got %q %v", got, err)
		}
	})
}

func file(t *testing.T, name, content string) *os.File {
	t.Helper()
	path := filepath.Join(guardtest.Dir(t), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// The command gets the files that a service manager or a shell has opened, but not the guard's own
// files.
func TestInheritedFilesKeepTheirNumbers(t *testing.T) {
	var files []*os.File
	for range 4 {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	guardtest.Apart(t, func(t *testing.T) {
		want := append(guardtest.Given(), tied...)
		c := newCandidate(t)
		r := c.guard.Run(c.worker(guardtest.Worker{For: 1}), c.lease(long), long)
		c.started(r)
		c.ends(r, Ending{})
		var got []string
		for _, n := range c.journal.Notes() {
			if fd, is := strings.CutPrefix(n.What, "file:"); is {
				got = append(got, fd)
			}
		}
		if !slices.Equal(got, want) || !slices.Contains(got, "6") {
			t.Errorf("the command has the files %v, want %v", got, want)
		}
		r = c.guard.Run(shell("for i in 3 4 5 6; do echo file $i >&$i; done"), c.lease(long), long)
		c.started(r)
		c.ends(r, Ending{})
	}, func(p *guardtest.Process) {
		p.Passes()
		for i, f := range files {
			want := fmt.Sprintf("file %d\n", 3+i)
			if got, err := os.ReadFile(f.Name()); err != nil || string(got) != want {
				t.Errorf("got %q %v, want %q", got, err, want)
			}
		}
	}, files...)
}

func TestCommandThatCannotBeStarted(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		plain := file(t, "plain", "#!/bin/sh\n").Name()
		for _, c := range []struct {
			why, path string
			missing   bool
		}{
			{"no such file", plain + ".not", true},
			{"no right to execute it", plain, false},
			{"a directory", guardtest.Dir(t), false},
		} {
			t.Run(c.why, func(t *testing.T) {
				a := newCandidate(t)
				r := a.guard.Run(NewCommand(c.path, []string{"x"}, nil), a.lease(long), long)
				got := a.rest(r)
				if len(got) != 2 || got[0].Failed == nil || got[1] != (Event{Empty: true}) {
					t.Fatalf("got %s", show(got))
				}
				if f := got[0].Failed; f.Missing != c.missing || !strings.Contains(f.Error(), c.path) {
					t.Errorf("got %+v", f)
				}
			})
		}
	})
}
