package seal_test

import (
	"testing"

	"github.com/tenure-go/tenure/driver/seal"
)

func TestSealBreaks(t *testing.T) {
	v := seal.New("k", []byte("value"))
	if len(v) != 48 || v == seal.New("k", []byte("value")) {
		t.Errorf("%q is not 48 digits, or was drawn twice", v)
	}
	for _, c := range []struct {
		why, version, key, value string
		want                     bool
	}{
		{"as it was made", v, "k", "value", true},
		{"the value was edited", v, "k", "Value", false},
		{"it was copied from another key", v, "j", "value", false},
		{"key and value meet elsewhere", v, "kv", "alue", false},
		{"the version was edited", "0" + v[1:], "k", "value", v[0] == '0'},
		{"it is too short", v[:46], "k", "value", false},
		{"it is no version", "x", "k", "value", false},
		{"it is empty", "", "k", "", false},
	} {
		if got := seal.Unbroken(c.version, c.key, []byte(c.value)); got != c.want {
			t.Errorf("%s: got %t", c.why, got)
		}
	}
}
