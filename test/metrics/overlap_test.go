package metrics

import (
	"fmt"
	"testing"
)

// seen is the result of one scrape of a candidate.
type seen struct {
	at       float64 // its time in Prometheus, in seconds
	from, to float64 // the candidate wrote it between these times
	leads    bool
	term     float64
}

// overlaps returns the scrapes that prove that two candidates led at once. A sum over all
// candidates proves nothing, because each is scraped at another time. But a candidate that leads in
// two scrapes with the same term has led all the time between them. So no other may be seen to lead
// in that time. The scrapes of each candidate are in order.
func overlaps(scrapes map[string][]seen) (found []string) {
	for name, all := range scrapes {
		for i := 1; i < len(all); i++ {
			before, after := all[i-1], all[i]
			if !before.leads || !after.leads || before.term != after.term {
				continue
			}
			for other, theirs := range scrapes {
				for _, s := range theirs {
					if other != name && s.leads && s.from > before.to && s.to < after.from {
						found = append(found, fmt.Sprintf("%s led from %.3f to %.3f, and %s between %.3f and %.3f",
							name, before.to, after.from, other, s.from, s.to))
					}
				}
			}
		}
	}
	return found
}

func TestOverlaps(t *testing.T) {
	a := []seen{{0, 0, 0.1, true, 1}, {0, 1, 1.1, true, 1}}
	for _, test := range []struct {
		name string
		b    []seen
		want int
	}{
		{"between two scrapes of a term", []seen{{0, 0.4, 0.5, true, 2}}, 1},
		{"follows", []seen{{0, 0.4, 0.5, false, 1}}, 0},
		{"a scrape that began before the first ended", []seen{{0, 0.05, 0.5, true, 2}}, 0},
		{"a scrape that ended after the second began", []seen{{0, 0.4, 1.05, true, 2}}, 0},
		{"later", []seen{{0, 1.4, 1.5, true, 2}, {0, 2.4, 2.5, true, 2}}, 0},
	} {
		if got := overlaps(map[string][]seen{"a": a, "b": test.b}); len(got) != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	again := []seen{{0, 0, 0.1, true, 1}, {0, 1, 1.1, true, 3}}
	if got := overlaps(map[string][]seen{"a": again, "b": {{0, 0.4, 0.5, true, 2}}}); len(got) != 0 {
		t.Errorf("a term of b between two of a: %v", got)
	}
}
