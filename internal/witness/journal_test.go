package witness_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/witness"
)

func open(t *testing.T, path string) *witness.Writer {
	t.Helper()
	w, err := witness.Open(path)
	must(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

func follow(t *testing.T, path string) *witness.Reader {
	t.Helper()
	r, err := witness.Follow(path)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// TestGolden: the bytes of a journal do not change, because programs outside this repository read
// them.
func TestGolden(t *testing.T) {
	const golden = `
		0807060504030201 1817161514131211 24232221 01000000 44434241 54535251
		0907060504030201 1817161514131211 24232221 02000000 45434241 54535251
		0a07060504030201 1817161514131211 24232221 03000000 44434241 54535251
		0b07060504030201 1817161514131211 24232221 04000000 44434241 54535251`
	path := filepath.Join(t.TempDir(), "journal")
	w := open(t, path)
	r := witness.Record{
		At: 0x0102030405060708, Token: 0x1112131415161718, Candidate: 0x21222324,
		PID: 0x41424344, Root: 0x51525354,
	}
	var wrote []witness.Record
	for i, what := range []witness.What{witness.Began, witness.Act, witness.Asked, witness.Ended} {
		rec := r
		rec.At, rec.What = r.At+int64(i), what
		if what == witness.Act {
			rec.PID++
		}
		must(t, w.Write(rec))
		wrote = append(wrote, rec)
	}
	text, err := os.ReadFile(path)
	want := strings.Join(strings.Fields(golden), "")
	if err != nil || hex.EncodeToString(text) != want {
		t.Errorf("the journal holds %x, %v; want %s", text, err, want)
	}
	if got, err := follow(t, path).Next(); err != nil || !slices.Equal(got, wrote) {
		t.Errorf("read %+v, %v", got, err)
	}
}

// TestTwoWriters: a reader gets the records of two writers once, in the order of the file.
func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	writers := []*witness.Writer{open(t, path), open(t, path)}
	r := follow(t, path)
	for round := range 3 {
		var wrote []witness.Record
		for i := range 3000 { // more than are read at once
			rec := witness.Record{
				At: int64(i), Token: 1 << 60, Candidate: uint32(round), What: witness.Act,
				PID: uint32(i % 2), Root: 7,
			}
			must(t, writers[i%2].Write(rec))
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

// TestTornJournal: if bytes are not a record, the reader returns the records before them, and an
// error.
func TestTornJournal(t *testing.T) {
	const records = 3000
	for name, c := range map[string]struct {
		tear func([]byte) []byte
		want int // the records before it
		says string
	}{
		"whole": {func(b []byte) []byte { return b }, records, ""},
		"tail":  {func(b []byte) []byte { return b[:len(b)-1] }, records - 1, "31 bytes"},
		"torn":  {func(b []byte) []byte { return slices.Delete(b, 32, 56) }, 1, "unknown kind"},
		"kind":  {func(b []byte) []byte { b[32*2000+20] = 5; return b }, 2000, "unknown kind"},
		"hole":  {func(b []byte) []byte { clear(b[32:64]); return b }, 1, "unknown kind"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			w := open(t, path)
			for i := range records {
				r := witness.Record{At: int64(i), Token: 7, What: witness.Act, PID: 9, Root: 9}
				must(t, w.Write(r))
			}
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, c.tear(text), 0o600)
			}
			must(t, err)
			got, err := follow(t, path).Next()
			if len(got) != c.want || (err != nil) != (c.says != "") {
				t.Errorf("read %d records, want %d; %v", len(got), c.want, err)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// must stops a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
