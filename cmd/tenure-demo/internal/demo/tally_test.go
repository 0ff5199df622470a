package demo

import (
	"testing"
	"time"
)

func TestTallySummarizesEachKind(t *testing.T) {
	var l = tally{}
	for _, f := range []failover{
		{kind: kindCrash, took: 900, least: 800, known: true},
		{kind: kindCrash, took: 500, least: 490, known: true},
		{kind: kindCrash, took: 700, least: 650, known: true},
		{kind: kindGraceful, took: 4, known: true, most: 20},
		{kind: kindGraceful, took: 8, known: true, most: 10},
		{kind: kindPause, took: 900, least: 800, known: true, most: 990},
		{kind: kindPause, took: 950},
	} {
		l.add(f)
	}
	want := []row{
		{kind: kindCrash, n: 3, median: 700, max: 900, leastMedian: 650, leastMax: 800, known: true},
		// One minimum is unknown, so none is shown.
		{kind: kindPause, n: 2, median: 925, max: 950, leastMedian: 400, leastMax: 800},
		{kind: kindGraceful, n: 2, median: 6, max: 8, known: true, mostMedian: 15, mostMax: 20},
		{kind: kindForced},
		{kind: kindOther},
	}
	for i, got := range l.rows() {
		if got != want[i] {
			t.Errorf("got  %+v\nwant %+v", got, want[i])
		}
	}
	if l.total() != 7 {
		t.Errorf("%d in all", l.total())
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		ds   []time.Duration
		want time.Duration
	}{
		{[]time.Duration{5}, 5}, {[]time.Duration{9, 1}, 5}, {[]time.Duration{9, 1, 2}, 2}, {[]time.Duration{4, 1, 3, 2}, 2},
	} {
		if got := median(c.ds); got != c.want {
			t.Errorf("median of %v is %d, want %d", c.ds, got, c.want)
		}
	}
}
