package etcdkv

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tenure-go/tenure/driver"
)

// TestStampedValues: values come back byte for byte, also those that look like stamped ones.
func TestStampedValues(t *testing.T) {
	mark := stamp{cluster: 0xabc, term: 9}
	for _, value := range []string{"", "x", "\n", "{}\ntenure cluster=", string(mark.seal([]byte("twice"))), "\x00\xff"} {
		raw := mark.seal([]byte(value))
		got, back, ok := unseal(raw)
		if !ok || back != mark || string(got) != value {
			t.Errorf("%q comes back as %q, %+v, %v", value, got, back, ok)
		}
		for _, wrong := range [][]byte{raw[:len(raw)-1], append(bytes.Clone(raw), '0'), append(bytes.Clone(raw), "\n"...)} {
			if _, back, ok := unseal(wrong); ok && back == mark {
				t.Errorf("%q has the stamp of %q", wrong, raw)
			}
		}
	}
}

// TestProof: a value is proven if its stamp fits the history that the answer shows.
func TestProof(t *testing.T) {
	answer := point{cluster: 7, revision: 100, term: 5}
	for _, c := range []struct {
		why   string
		mark  stamp
		proof bool
	}{
		{"written in this raft term", stamp{7, 5}, true},
		{"written before the cluster's last election", stamp{7, 3}, true},
		{"written in a raft term that this history has not reached", stamp{7, 6}, false},
		{"written in another cluster", stamp{8, 5}, false},
		{"not written by this package", stamp{}, false},
	} {
		raw := c.mark.seal([]byte("x"))
		if _, _, unproven := entryOf(raw, 3, answer); unproven == c.proof {
			t.Errorf("%s: unproven is %v", c.why, unproven)
		}
	}
	if _, _, unproven := entryOf([]byte("by hand"), 3, answer); !unproven {
		t.Error("a value that was written by hand is proven")
	}
}

// TestVersions: a version names its era, its revision and its bytes, and fits nothing else.
func TestVersions(t *testing.T) {
	latest := point{cluster: 7, revision: 100, term: 5}
	v := version{era: latest.era(), revision: 12, raw: "a value with spaces"}
	if back, ok := parseVersion(v.encode()); !ok || back != v {
		t.Errorf("got %+v, %v", back, ok)
	}
	guards, err := compares([]byte("key"), v.encode(), latest)
	if err != nil || len(guards) != 2 || guards[0].GetModRevision() != 12 || string(guards[1].GetValue()) != v.raw {
		t.Errorf("the conditions are %v, %v", guards, err)
	}
	for _, prev := range []driver.Version{version{latest.era() + 1, 12, "x"}.encode(), "x", "7 x y", "7 -1 y", "7 0 y", " "} {
		if _, err := compares([]byte("key"), prev, latest); !errors.Is(err, driver.ErrConflict) {
			t.Errorf("version %q: %v", prev, err)
		}
	}
}
