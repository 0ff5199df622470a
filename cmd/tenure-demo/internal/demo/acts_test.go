package demo

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

func TestOverlappingActsAreReported(t *testing.T) {
	a := acts{last: map[uint64]stamp.Time{}}
	for _, c := range []struct {
		token uint64
		id    string
		pid   int
		at    int
		want  string
	}{
		{1, "c1", 101, 10, ""},
		{2, "c2", 102, 20, ""},
		{1, "c1", 101, 25, "c1 (process 101) acts in term 1 5ms after c2 (process 102) first acted in term 2"},
		{1, "c1", 101, 26, ""}, // the same terms
		{3, "c2", 102, 40, ""},
		{3, "c2", 103, 41, "c2 (process 102) and c2 (process 103) both act in term 3"},
		{2, "c2", 102, 15, ""}, // late, and before the last one
	} {
		got := ""
		for _, o := range a.add(c.token, c.id, c.pid, at(c.at)) {
			got += o.String()
			if idOf(o.Newer) != "c2" {
				t.Errorf("%q is the newer candidate", idOf(o.Newer))
			}
		}
		if got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
	if a.n != 7 || a.overlaps != 2 {
		t.Errorf("counted %d acts and %d overlaps", a.n, a.overlaps)
	}
	if last, ok := a.lastOf(2); !ok || last != at(20) {
		t.Errorf("got %v, %v", last, ok)
	}
	if last, ok := a.lastOf(4); ok || last != stamp.Time(0) {
		t.Errorf("got %v of a term that there was not", last)
	}
}
