//go:build integration && unix

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/trace"
	"github.com/tenure-go/tenure/internal/trace/rules"
)

// TestRunRecords: the traces of two runs after one another replay and keep the rules. The first is
// renamed.
func TestRunRecords(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := filepath.Join(t.TempDir(), "trace")
	for range 2 {
		h.wrap([]string{"--trace", file}, "true").Start().Ends(0)
	}
	files := map[string][]byte{}
	for _, name := range []string{file, file + ".1"} {
		text, err := os.ReadFile(name)
		must.OK(t, err)
		if !bytes.Contains(text, []byte(`"elected"`)) || !bytes.Contains(text, []byte(`"released"`)) {
			t.Errorf("%s is not whole:\n%s", name, text)
		}
		lines, err := trace.Parse(bytes.NewReader(text))
		must.OK(t, err)
		must.OK(t, trace.Replay(lines))
		files[name] = text
	}
	must.OK(t, rules.Check(files, 0))
}

// TestTraceRenamesFilesAlone: a directory or a link in the place of the file stays there.
func TestTraceRenamesFilesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	must.OK(t, os.Symlink("/dev/null", link))
	for _, name := range []string{dir, link} {
		if _, err := openTrace(name); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
}

// TestTraceIsBounded: a trace that is full gets no more lines.
func TestTraceIsBounded(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "trace")
	f, err := openTrace(name)
	must.OK(t, err)
	f.left = 4
	if _, err := f.Write([]byte("abc\n")); err != nil {
		t.Error(err)
	}
	if _, err := f.Write([]byte("d\n")); !errors.Is(err, errTraceFull) {
		t.Errorf("the error is %v", err)
	}
	f.end(nil)
	if text, _ := os.ReadFile(name); string(text) != "abc\n" {
		t.Errorf("the file has %q", text)
	}
}
