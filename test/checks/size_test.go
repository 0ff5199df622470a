package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoLargeFileIsKept: a file of the project has at most 256 kB. A larger one is in most cases a
// program that was built by hand, and users of the module would download it.
func TestNoLargeFileIsKept(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(files) < 500 {
		t.Fatalf("git lists %d files", len(files))
	}
	for _, name := range files {
		file, err := os.Stat(filepath.Join(root, name))
		if err == nil && file.Size() > 256<<10 {
			t.Errorf("%s has %d kB", name, file.Size()>>10)
		}
	}
}
