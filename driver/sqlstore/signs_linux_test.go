package sqlstore

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSigns waits for the kernel's report of each event.
func TestSigns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "elections.db")
	write := func(path string) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = f.WriteString("x")
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	write(file)
	s := newSigns(file)
	defer s.close()
	for _, event := range []func(){
		func() { write(file) },
		func() { write(file + "-wal"); s.follow(); write(file + "-wal") },
		func() { _ = os.Rename(file, file+".new") },
		func() { _ = os.Remove(file + ".new") },
	} {
		event()
		<-s.seen()
	}
}

func TestNoSignsOfAMissingFile(t *testing.T) {
	s := newSigns(filepath.Join(t.TempDir(), "elections.db"))
	if s != nil {
		t.Error("there are signs of a file that does not exist")
	}
	s.follow()
	s.close()
	if s.seen() != nil {
		t.Error("a channel without signs must be nil")
	}
}
