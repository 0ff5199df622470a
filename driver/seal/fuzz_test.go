package seal_test

import (
	"bytes"
	"testing"

	"github.com/tenure-go/tenure/driver/seal"
)

// FuzzUnbroken: a seal is unbroken for its own key and value alone, and no text but the version
// itself is one.
func FuzzUnbroken(f *testing.F) {
	f.Add("billing", []byte("{}"), "billing", []byte("{}"), "00")
	f.Add("a", []byte("\x00b"), "a\x00", []byte("b"), "")
	f.Fuzz(func(t *testing.T, key string, value []byte, otherKey string, otherValue []byte, text string) {
		version := seal.New(key, value)
		if !seal.Unbroken(version, key, value) {
			t.Fatalf("the seal of %q, %q is broken", key, value)
		}
		// Keys have no NUL: the contract of drivers refuses control characters.
		if clear := !bytes.ContainsRune([]byte(key+otherKey), 0); clear &&
			(key != otherKey || !bytes.Equal(value, otherValue)) && seal.Unbroken(version, otherKey, otherValue) {
			t.Errorf("the seal of %q, %q fits %q, %q", key, value, otherKey, otherValue)
		}
		if text != version && seal.Unbroken(text, key, value) && len(text) != len(version) {
			t.Errorf("%q is a version", text)
		}
	})
}
