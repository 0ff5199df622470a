package overlay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/overlay"
)

const source = `package main

func main() { println("sound", 1) }
`

func module(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26.0\n", "cmd/main.go": source} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// TestStale: an edit fails if its text is missing or occurs twice.
func TestStale(t *testing.T) {
	top := module(t)
	for _, c := range []struct{ old, want string }{
		{"no longer there", "0 times"},
		{"main", "2 times"},
	} {
		_, err := overlay.Write(top, t.TempDir(), []overlay.Edit{{File: "cmd/main.go", Old: c.old, New: "x"}})
		if err == nil || !strings.Contains(err.Error(), "cmd/main.go holds this text "+c.want) {
			t.Errorf("%q: %v", c.old, err)
		}
	}
}
