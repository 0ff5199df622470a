//go:build integration

package recipes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program outside of the clone builds with the lines of go.mod that the README shows.
func TestReadmeShowsLinesOfGoMod(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(readme), "```\nreplace (\n")
	lines, _, ok := strings.Cut(lines, "```")
	if !ok {
		t.Fatal("the README has no lines of go.mod")
	}
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/app\n\ngo 1.26\n\nreplace (\n" + strings.ReplaceAll(lines, "../tenure", clone),
		"main.go": "package main\n\nimport \"github.com/tenure-go/tenure/driver/natskv\"\n\nfunc main() { _ = natskv.Open }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
