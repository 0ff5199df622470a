package demo

import (
	"slices"
	"time"
)

// kinds are all kinds, in the order of the table.
var kinds = []kind{kindCrash, kindPause, kindGraceful, kindForced, kindOther}

// tally holds the failovers of each kind.
type tally map[kind][]failover

func (t tally) add(f failover) { t[f.kind] = append(t[f.kind], f) }

// row is the statistics of one kind.
type row struct {
	kind        kind
	n           int
	median, max time.Duration
	// The least possible times of the same failovers; known is false if one of them is unknown.
	leastMedian, leastMax time.Duration
	known                 bool
	// The longest possible times of the same failovers; 0 if one of them has no bound.
	mostMedian, mostMax time.Duration
}

func (t tally) rows() []row {
	var all []row
	for _, k := range kinds {
		all = append(all, summarize(k, t[k]))
	}
	return all
}

func summarize(k kind, fs []failover) row {
	r := row{kind: k, n: len(fs)}
	if r.n == 0 {
		return r
	}
	var took, least, most []time.Duration
	r.known = true
	for _, f := range fs {
		took, least, most = append(took, f.took), append(least, f.least), append(most, f.most)
		r.known = r.known && f.known
	}
	r.median, r.max = median(took), slices.Max(took)
	r.leastMedian, r.leastMax = median(least), slices.Max(least)
	if slices.Min(most) > 0 {
		r.mostMedian, r.mostMax = median(most), slices.Max(most)
	}
	return r
}

// median returns the median; for an even number, the mean of the two in the middle.
func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	n := len(ds)
	return (ds[(n-1)/2] + ds[n/2]) / 2
}

func (t tally) total() int {
	n := 0
	for _, fs := range t {
		n += len(fs)
	}
	return n
}
