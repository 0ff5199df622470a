package witness

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzJournal: a journal that is read is written with the same bytes, and its acts are counted.
func FuzzJournal(f *testing.F) {
	var text bytes.Buffer
	for at, what := range []What{Began, Act, Act, Asked, Ended, Act} {
		_ = binary.Write(&text, binary.LittleEndian, Record{At: int64(at), Token: uint64(at / 2), Candidate: 1, What: what, PID: 2, Root: 2})
	}
	f.Add(text.Bytes())
	f.Add(text.Bytes()[:40])
	f.Fuzz(func(t *testing.T, text []byte) {
		records, err := decode(text)
		if err != nil {
			return
		}
		var again bytes.Buffer
		acts := 0
		for _, r := range records {
			_ = binary.Write(&again, binary.LittleEndian, r)
			if r.What == Act {
				acts++
			}
		}
		if !bytes.Equal(again.Bytes(), text) {
			t.Errorf("%x is written as %x", text, again.Bytes())
		}
		if v := Judge(records); v.Acts != acts || v.Stale > acts || v.Terms > acts || v.AfterEnd > acts {
			t.Errorf("%d acts are judged as %+v", acts, v)
		}
	})
}
