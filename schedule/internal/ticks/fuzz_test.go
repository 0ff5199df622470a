package ticks

import (
	"bytes"
	"testing"

	"github.com/tenure-go/tenure/driver"
)

// FuzzDecode: a state that is read can be written, unless too many ticks may run, and is then read
// as the same state. What is written fits into every store.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"format":"tenure-ticks/1","seq":3,"nonce":"n","era":"7","at":"2026-01-02T03:04:05Z","id":"a","token":4,"plan":"@daily UTC",` +
		`"ticks":[{"planned":"2026-01-02T00:00:00Z","state":"finished","token":4,"id":"a","began":"2026-01-02T00:00:00Z","attempt":1}]}`))
	f.Add([]byte(`{"format":"tenure-ticks/1"}`))
	f.Add([]byte(`{"format":"tenure-ticks/2"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		s, err := Decode(value)
		if Is(value) != (err == nil) {
			t.Fatalf("%s is a state and is none", value)
		}
		if err != nil {
			return
		}
		text, err := s.encode()
		if err != nil {
			return
		}
		if len(text) > driver.MaxValue || len(s.Ticks) > maxTicks {
			t.Errorf("%d bytes, %d ticks", len(text), len(s.Ticks))
		}
		back, err := Decode(text)
		if err != nil {
			t.Fatalf("%s is written as %s, and not read: %v", value, text, err)
		}
		if again, err := back.encode(); err != nil || !bytes.Equal(again, text) {
			t.Errorf("%s is written as %s, and then as %s, %v", value, text, again, err)
		}
	})
}
