package recipes

import (
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

const guide = "docs/run.md"

// rows returns the rows of the guide's table whose first line begins like this, without its frame.
func rows(t *testing.T, begin string) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(text(t, guide), "\n"+begin)
	if !ok {
		t.Fatalf("no table begins with %s", begin)
	}
	var all [][]string
	for i, l := range strings.Split(rest, "\n") {
		if i > 0 && !strings.HasPrefix(l, "|") {
			break
		}
		if i > 1 {
			cells := strings.Split(strings.Trim(l, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			all = append(all, cells)
		}
	}
	return all
}

// The last part of --stop-within is for killing: a quarter, and at most this time.
const reserve = time.Second

func TestGuideComputesTheTimesCorrectly(t *testing.T) {
	all := rows(t, "| --lease |")
	for _, cells := range all {
		var times []time.Duration
		for _, cell := range cells {
			d, err := time.ParseDuration(cell)
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, d)
		}
		lease, stop := times[0], times[1] // with the drift that clocks on Linux may have
		over := lease - tenure.Config{Lease: lease, StopWithin: stop, Tuning: tenure.Tuning{Drift: 0.01}}.Margin()
		want := []time.Duration{lease, min(lease/5, 5*time.Second), lease / 3, over, over + stop - min(stop/4, reserve), lease}
		for i, got := range times {
			if diff := (got - want[i]).Abs(); diff > 10*time.Millisecond {
				t.Errorf("lease %v, column %d: %v, and it is %v", lease, i+1, got, want[i])
			}
		}
	}
	if len(all) < 3 {
		t.Errorf("%d rows", len(all))
	}
}
