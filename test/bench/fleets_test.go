package main

import (
	"testing"
	"time"
)

// TestTerms: reports arrive in any order. Only work at the same time as the next leader's is an
// error. The leases of a killed member must end first, except for the margin.
func TestTerms(t *testing.T) {
	const testLease, testMargin = int64(10 * time.Second), time.Second
	begin := func(who string, at int64) entry {
		return entry{who, report{What: leads, Election: "e", Token: uint64(at), At: at}}
	}
	end := func(who string, token uint64, at int64) entry {
		return entry{who, report{What: left, Election: "e", Token: token, At: at}}
	}
	expired, killed := end("a", 1, 4), end("a", 1, testLease)
	expired.Expired, killed.Killed = true, true
	for _, c := range []struct {
		name  string
		all   []entry
		wrong bool
	}{
		{"in turn", []entry{begin("a", 1), end("a", 1, 2), begin("b", 3)}, false},
		{"in turn, reported late", []entry{begin("a", 1), begin("b", 3), end("a", 1, 2)}, false},
		{"two ends reported late", []entry{begin("a", 1), begin("b", 3), begin("c", 5), end("b", 3, 4),
			end("a", 1, 2)}, false},
		{"two at once", []entry{begin("a", 1), end("a", 1, 4), begin("b", 3)}, true},
		{"two at once, reported late", []entry{begin("a", 1), begin("b", 3), end("a", 1, 4)}, true},
		{"no end", []entry{begin("a", 1), begin("b", 3)}, true},
		{"no end, of a process that is gone", []entry{begin("gone", 1), begin("b", 3)}, false},
		{"reported late, but expired", []entry{begin("a", 1), expired, begin("b", 3)}, false},
		{"a token that does not rise", []entry{begin("a", 3), end("a", 3, 4), {"b",
			report{What: leads, Election: "e", Token: 2, At: 5}}}, true},
		{"elected after the lease", []entry{begin("a", 1), killed, begin("b", testLease+1)}, false},
		{"elected in the margin", []entry{begin("a", 1), begin("b", testLease-1), killed}, false},
		{"elected during the lease", []entry{begin("a", 1), begin("b", testLease/2), killed}, true},
	} {
		v := judge(terms(c.all), testMargin, 2*testLease, func(who string) bool { return who != "gone" })
		if v.Safe() == c.wrong {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// TestChanges: a change is a term that began after a given time and follows a term whose end is
// known.
func TestChanges(t *testing.T) {
	c := changesSince(map[string][]span{
		"moved":  {{begin: 1, end: 5}, {begin: 8}},
		"killed": {{begin: 1, end: 6, killed: true}, {begin: 10}},
		"before": {{begin: 1, end: 2}, {begin: 3}},
		"open":   {{begin: 1}, {begin: 7}},
	}, 4)
	if c.begun != 3 || c.whole != 6 || len(c.gaps) != 2 || c.gaps.Max() != 4 ||
		c.late.Max() != 4 || c.over != 4 {
		t.Errorf("%+v", c)
	}
}
