package etcdkv

import (
	"bytes"
	"testing"

	"github.com/tenure-go/tenure/driver"
)

// FuzzUnseal: bytes have a stamp if and only if sealing their value with it gives these bytes.
func FuzzUnseal(f *testing.F) {
	f.Add(stamp{cluster: 0xabc, term: 7}.seal([]byte("{}")), []byte("value"))
	f.Add([]byte("x\ntenure cluster=+0 raft_term=1"), []byte("\ntenure cluster="))
	f.Fuzz(func(t *testing.T, raw, plain []byte) {
		value, s, ok := unseal(raw)
		if again := s.seal(value); ok && !bytes.Equal(again, raw) {
			t.Errorf("%q is read as %q with %+v, which is written as %q", raw, value, s, again)
		}
		if !ok && !bytes.Equal(value, raw) {
			t.Errorf("%q without a stamp is read as %q", raw, value)
		}
		sealed := s.seal(plain)
		if back, was, ok := unseal(sealed); !ok || was != s || !bytes.Equal(back, plain) {
			t.Errorf("%q comes back as %q with %+v, %v", sealed, back, was, ok)
		}
	})
}

// FuzzVersion: each version that is accepted survives encoding.
func FuzzVersion(f *testing.F) {
	f.Add(string(version{era: 0xabc, revision: 12, raw: "a b"}.encode()))
	f.Add("0 1 ")
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := parseVersion(driver.Version(text))
		if !ok {
			return
		}
		if again, ok := parseVersion(v.encode()); !ok || again != v {
			t.Errorf("%q is read as %+v, and then as %+v, %v", text, v, again, ok)
		}
	})
}
