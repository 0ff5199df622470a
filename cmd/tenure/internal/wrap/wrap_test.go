//go:build unix

package wrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"runs": 0o755, "plain": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":.")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("here", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
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
	} {
		path, code, err := Find(c.name)
		if path != c.path || code != c.code || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %d, %v", c.name, path, code, err)
		}
	}
}

func TestStopWithin(t *testing.T) {
	if a, b := StopWithin(time.Second), StopWithin(time.Minute); a != 200*time.Millisecond || b != 5*time.Second {
		t.Errorf("got %v and %v", a, b)
	}
}
