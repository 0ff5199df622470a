package journal_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/test/battery/internal/journal"
)

// TestTwoWriters: what two processes append is read in the order in which it was appended, and once.
func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	var writers [2]*journal.Writer
	for i := range writers {
		w, err := journal.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		writers[i] = w
	}
	r, err := journal.Follow(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for round := range 3 {
		var wrote []journal.Record
		for i := range 3000 { // more than are read at once
			rec := journal.Record{At: int64(i), Token: 1 << 60, Candidate: uint32(round), What: journal.Act, PID: uint32(i % 2), Root: 7}
			if err := writers[i%2].Write(rec); err != nil {
				t.Fatal(err)
			}
			wrote = append(wrote, rec)
		}
		if got, err := r.Next(); err != nil || !slices.Equal(got, wrote) {
			t.Fatalf("round %d: read %d records of %d, %v", round, len(got), len(wrote), err)
		}
	}
	if got, err := r.Next(); len(got) > 0 || err != nil {
		t.Errorf("%d records are read twice, %v", len(got), err)
	}
}
