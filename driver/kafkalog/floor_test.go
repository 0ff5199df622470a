package kafkalog

import "testing"

// TestFloorStays: a log that lost its end is shorter, although leaders had terms above its end.
// Another topic starts again.
func TestFloorStays(t *testing.T) {
	var s Store
	one, two := &stretch{at: place{id: [16]byte{1}}}, &stretch{at: place{id: [16]byte{2}}}
	for _, c := range []struct {
		in   *stretch
		end  int64
		want uint64
	}{{one, 10, 10}, {one, 5, 10}, {one, 11, 11}, {two, 3, 3}, {two, 2, 3}} {
		if got := s.raise(c.in, c.end); got != c.want {
			t.Errorf("floor %d at the end %d of topic %d, want %d", got, c.end, c.in.at.id[0], c.want)
		}
	}
}
