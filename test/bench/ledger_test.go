package main

import (
	"testing"
	"time"
)

// TestLedger: reports arrive in any order, and only work beside the next leader's is wrong.
func TestLedger(t *testing.T) {
	const margin = time.Second
	begin := func(who string, at int64) entry { return entry{who, report{What: leads, Election: "e", At: at}} }
	end := func(who string, at int64) entry { return entry{who, report{What: left, Election: "e", At: at}} }
	expired := func(who string, at int64) entry {
		e := end(who, at)
		e.Expired = true
		return e
	}
	for _, c := range []struct {
		name  string
		all   []entry
		wrong int
		leads string
	}{
		{"in turn", []entry{begin("a", 1), end("a", 2), begin("b", 3)}, 0, "b"},
		{"in turn, heard late", []entry{begin("a", 1), begin("b", 3), end("a", 2)}, 0, "b"},
		{"both ends heard late", []entry{begin("a", 1), begin("b", 3), begin("c", 5), end("b", 4), end("a", 2)}, 0, "c"},
		{"the second end heard first", []entry{begin("a", 1), begin("b", 3), end("b", 4), end("a", 2)}, 0, ""},
		{"two at once", []entry{begin("a", 1), end("a", 4), begin("b", 3)}, 1, "b"},
		{"two at once, heard late", []entry{begin("a", 1), begin("b", 3), end("a", 4)}, 1, "b"},
		{"no end", []entry{begin("a", 1), begin("b", 3)}, 1, "b"},
		{"a busy process says late that its term expired", []entry{begin("a", 1), expired("a", 4), begin("b", 3)}, 0, "b"},
		{"the same, heard late", []entry{begin("a", 1), begin("b", 3), expired("a", 4)}, 0, "b"},
	} {
		l := ledger{terms: map[string][]span{}, margin: margin}
		for _, e := range c.all {
			l.note(e)
		}
		if l.wrong() != c.wrong || l.leader("e") != c.leads {
			t.Errorf("%s: %d wrong, want %d; %q leads, want %q", c.name, l.wrong(), c.wrong, l.leader("e"), c.leads)
		}
	}
}

// TestLedgerKill: a killed member's leases must end first, except where others lead already.
func TestLedgerKill(t *testing.T) {
	const lease, margin = 10 * time.Second, time.Second
	for at, wrong := range map[int64]int{int64(lease): 0, int64(lease) / 2: 1} {
		l := ledger{terms: map[string][]span{}, margin: margin}
		l.note(entry{"a", report{What: leads, Election: "e", At: 1}})
		l.note(entry{"a", report{What: leads, Election: "taken", At: 1}})
		l.note(entry{"b", report{What: leads, Election: "taken", At: 2}})
		l.kill("a", map[string]int64{"e": int64(lease)})
		l.note(entry{"b", report{What: leads, Election: "e", At: at}})
		if l.wrong() != wrong || l.leader("taken") != "b" {
			t.Errorf("elected at %v: %d wrong, want %d; %+v", time.Duration(at), l.wrong(), wrong, l.terms)
		}
	}
}
