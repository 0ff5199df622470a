package demo

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file, or writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// noon is one time on both clocks.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(millis int) stamp.Time { return stamp.Time(time.Duration(millis) * time.Millisecond) }

func wall(millis int) time.Time { return noon.Add(time.Duration(millis) * time.Millisecond) }

// until is a writer that calls found once the text was written.
type until struct {
	text  string
	found func()

	mu  sync.Mutex
	all bytes.Buffer
}

func (u *until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all.Write(p)
	if strings.Contains(u.all.String(), u.text) {
		u.found()
	}
	return len(p), nil
}

// must stops a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
