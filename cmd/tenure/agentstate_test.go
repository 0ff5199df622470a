package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

// TestReplaceIsAtomic: a reader has the old text of the state file or the new one, also a reader
// that opened it before.
func TestReplaceIsAtomic(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	texts := []string{strings.Repeat("billing\tleading\t1\ta\n", 5000), strings.Repeat("billing\tfollowing\t0\tb\n", 4000)}
	must.OK(t, replace(file, texts[0]))
	before, err := os.Open(file)
	must.OK(t, err)
	defer before.Close()
	replaced := make(chan error, 1)
	go func() {
		var err error
		for i := range 300 {
			err = cmp.Or(err, replace(file, texts[i%2]))
		}
		replaced <- err
	}()
	broken := 0
	for len(replaced) == 0 {
		if text, err := os.ReadFile(file); err != nil || !slices.Contains(texts, string(text)) {
			broken++
		}
	}
	must.OK(t, <-replaced)
	if broken > 0 {
		t.Errorf("%d reads got neither text", broken)
	}
	old := make([]byte, len(texts[0])+1)
	if n, _ := before.Read(old); string(old[:n]) != texts[0] {
		t.Errorf("a reader of the old text got %d bytes", n)
	}
}
