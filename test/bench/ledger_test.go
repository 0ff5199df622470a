package main

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/test/internal/acts"
)

func term(w what, who string, token uint64, at int64) entry {
	return entry{who, report{What: w, Election: "e", Token: token, At: at}}
}

// TestLedger: reports arrive in any order, and only work beside the next leader's is wrong.
func TestLedger(t *testing.T) {
	begin := func(who string, at int64) entry { return term(leads, who, uint64(at), at) }
	expired := term(left, "a", 1, 4)
	expired.Expired = true
	for _, c := range []struct {
		name  string
		all   []entry
		wrong bool
		leads string
	}{
		{"in turn", []entry{begin("a", 1), term(left, "a", 1, 2), begin("b", 3)}, false, "b"},
		{"in turn, reported late", []entry{begin("a", 1), begin("b", 3), term(left, "a", 1, 2)}, false, "b"},
		{"two ends reported late", []entry{begin("a", 1), begin("b", 3), begin("c", 5), term(left, "b", 3, 4),
			term(left, "a", 1, 2)}, false, "c"},
		{"the second end reported first", []entry{begin("a", 1), begin("b", 3), term(left, "b", 3, 4),
			term(left, "a", 1, 2)}, false, ""},
		{"two at once", []entry{begin("a", 1), term(left, "a", 1, 4), begin("b", 3)}, true, "b"},
		{"two at once, reported late", []entry{begin("a", 1), begin("b", 3), term(left, "a", 1, 4)}, true, "b"},
		{"no end", []entry{begin("a", 1), begin("b", 3)}, true, "b"},
		{"a busy process reports late that its term expired", []entry{begin("a", 1), expired, begin("b", 3)}, false, "b"},
		{"a token that does not rise", []entry{begin("a", 1), term(left, "a", 1, 2), term(leads, "b", 1, 3)}, true, "b"},
	} {
		l := ledger{map[string][]span{}, &acts.Book{}}
		for _, e := range c.all {
			l.note(e)
		}
		if v := l.judge(9); v.Safe() == c.wrong || l.leader("e") != c.leads {
			t.Errorf("%s: %+v; %q leads, want %q", c.name, v, l.leader("e"), c.leads)
		}
	}
}

// TestLedgerKill: a killed member's leases must end first, except where others lead already.
func TestLedgerKill(t *testing.T) {
	const lease, margin = int64(10 * time.Second), time.Second
	for at, safe := range map[int64]bool{lease: true, lease - int64(margin)/2: true, lease / 2: false} {
		l := ledger{map[string][]span{}, &acts.Book{}}
		l.note(term(leads, "a", 1, 1))
		for token, who := range []string{"a", "b"} {
			taken := term(leads, who, uint64(token+1), int64(token+1))
			taken.Election = "taken"
			l.note(taken)
		}
		l.kill("a", map[string]int64{"e": lease}, margin)
		l.note(term(leads, "b", 2, at))
		if v := l.judge(2 * lease); v.Safe() != safe || l.leader("taken") != "b" {
			t.Errorf("elected at %v: %+v", time.Duration(at), v)
		}
	}
}
