package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/timing"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
		says string
	}{
		{"-rows", exitOK, "crash"},
		{"-rows -row s3", exitOK, "s3-crash"},
		{"-rows -row crash,s3", exitOK, "s3-crash"},
		{"-rows -row kafka-group", exitOK, "kafka-group-stop"},
		{"-row crash,", exitUsage, "there is no row"},
		{"-row nonsense", exitUsage, "there is no row"},
		{"stray", exitUsage, ""},
	} {
		var out strings.Builder
		got := run(t.Context(), strings.Fields(c.args), &out, &out)
		if got != c.want || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit %d, %q; want %d, %q", c.args, got, out.String(), c.want, c.says)
		}
	}
}

// scripted is an experiment that runs a function of the test.
type scripted func(t *trial)

func (scripted) about() about       { return about{"r", "a title", "A note"} }
func (x scripted) measure(t *trial) { x(t) }

// TestTable also checks that each row is named once.
func TestTable(t *testing.T) {
	all := table{results: []result{{row{&site{title: "Store"}, scripted(nil)},
		[]measure{{what: "x", value: "1 ms", verdict: figures.Missed}, {what: "y"}}, "Noise"}}}
	var markdown strings.Builder
	all.print(&markdown, true)
	for _, want := range []string{"| r | x | 1 ms |  | MISSED |", "|  | y |",
		"- r: Store: a title. A note. Noise."} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("the markdown lacks %q:\n%s", want, markdown.String())
		}
	}
}

// TestMeasure: after an error a row is unmeasured, which fails the command. On a busy machine a row
// is missed, which does not. The measures before the error stay, and the trial cleans up.
func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		err  error
		want figures.Verdict
	}{
		{nil, figures.Held},
		{fmt.Errorf("measuring: %w", errBusy), figures.Missed},
		{errors.New("x"), figures.Unmeasured},
	} {
		ended := false
		r := (&bench{log: io.Discard}).measure(row{&site{}, scripted(func(t *trial) {
			t.cleanup(func() { ended = true })
			sideBySide(t, 2, func(t *trial, i int) int {
				if i == 1 {
					check(c.err)
				}
				t.report(measure{verdict: figures.Held})
				return i
			})
		})})
		got := (&table{results: []result{r}}).worst()
		if got != c.want || !ended || r.found[0].verdict != figures.Held {
			t.Errorf("%v: %v, want %v; ended %t; %+v", c.err, got, c.want, ended, r.found)
		}
	}
}

// TestUnsafe: two leaders, a falling token, an early election and a control without overlap fail
// the command. A missed bound does not.
func TestUnsafe(t *testing.T) {
	overlapping, safe := witness.Verdict{Stale: 1}, witness.Verdict{}
	for _, c := range []struct {
		measure
		fails bool
	}{
		{judgedLine("", overlapping, ""), true},
		{judgedLine("", witness.Verdict{Regressed: 1}, ""), true},
		{judgedLine("", safe, ""), false},
		{none("early", 1, 2), true},
		{none("early", 0, 2), false},
		{controlled("x", func() witness.Verdict { return safe }), true},
		{controlled("x", func() witness.Verdict { return overlapping }), false},
		{timed("x", figures.Dist{time.Second}, figures.Bound{Max: time.Millisecond}, ""), false},
	} {
		if fails := c.verdict > figures.Missed; fails != c.fails {
			t.Errorf("%+v: fails %t", c.measure, fails)
		}
	}
}

func journalOf(all ...entry) *team {
	c := &team{trial: &trial{bench: &bench{log: io.Discard}}}
	for _, e := range all {
		c.journal.Add(e)
	}
	return c
}

// TestFailedMember: a failure that a member reports ends the waits of the trial.
func TestFailedMember(t *testing.T) {
	c := &team{trial: &trial{bench: &bench{ctx: t.Context()}}}
	c.hear("a", report{What: failed, Error: "x"})
	err := c.do(func(*trial) { c.heard(c.journal.Mark(), nil, leads) })
	if err == nil || err.Error() != "a: x" {
		t.Errorf("the trial ended with %v", err)
	}
}

// TestLastSend: the version that a claim replaced shows the last write of a killed leader.
func TestLastSend(t *testing.T) {
	send := func(who string, at int64, prev string) entry {
		return entry{who, report{What: sending, At: at, Prev: prev}}
	}
	wrote := func(who string, at int64, prev, version string) entry {
		return entry{who, report{What: wrote, At: at, Prev: prev, Version: version}}
	}
	for _, c := range []struct {
		name string
		all  []entry
		want int64
	}{
		{"the claim replaced a request, which copied the leader's write", []entry{
			send("dead", 10, "0"), wrote("dead", 10, "0", "1"), wrote("other", 20, "1", "2"),
			send("dead", 25, "1"), send("next", 30, "2")}, 10},
		{"the last write went out from the version that was replaced", []entry{
			send("dead", 10, "0"), send("dead", 20, "1"), send("dead", 25, "2"), send("next", 30, "2")}, 20},
		{"no write went out from that version", []entry{
			send("dead", 10, "0"), send("dead", 20, "1"), send("next", 30, "2")}, 20},
		{"no write of the dead leader", []entry{send("next", 30, "2")}, 0},
		{"no claim", []entry{send("dead", 10, "0")}, 0},
	} {
		got, err := lastSend(c.all, "dead", entry{"next", report{What: leads, At: 40}})
		if got != c.want || err == nil != (c.want > 0) {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
}

// TestLosses: the last write that was confirmed in time decides the deadline of a term.
func TestLosses(t *testing.T) {
	const lease = 2 * time.Second
	usable := int64(lease - timing.Margin(tenure.Config{Lease: lease}))
	for _, x := range []struct {
		at      int64 // after the deadline
		expired bool
		early   int
		why     string
	}{
		{0, true, 0, "all of the lease was used"},
		{-int64(lease / 500), true, 1, "some of it was left"},
		{0, false, 1, "another cause"},
	} {
		c := journalOf(
			entry{"a", report{What: wrote, Token: 1, At: 90, Until: 95}},
			entry{"a", report{What: wrote, Token: 2, At: 20, Until: 25}},
			entry{"a", report{What: wrote, Token: 2, At: 50, Until: 55}},
			entry{"b", report{What: wrote, Token: 2, At: 70, Until: 75}},
			// It was confirmed too late.
			entry{"a", report{What: wrote, Token: 2, At: 50 + usable - int64(lease/100),
				Until: 60 + usable}},
			// A release does not extend the deadline.
			entry{"a", report{What: wrote, Token: 2, At: 70 + usable, Until: 80 + usable, Released: true}},
			entry{"a", report{What: lost, Token: 2, At: 50 + usable + x.at, Expired: x.expired}})
		c.role.Lease = lease
		if got := c.losses(); got.lost != 1 || got.early != x.early || got.writes != 6 {
			t.Errorf("%+v, want %d early: %s", got, x.early, x.why)
		}
	}
}

// An election is kept if no member was elected since. A write counts from when it was sent.
func TestReapMeasuresOutages(t *testing.T) {
	c := journalOf(
		entry{"a", report{What: leads, Election: "e", At: 10}},
		entry{"a", report{What: wrote, Election: "e", At: 20, Until: 25}},
		entry{"a", report{What: wrote, Election: "e", At: 40, Until: 60}}, // sent before
		entry{"a", report{What: wrote, Election: "e", At: 70, Until: 145}},
		entry{"a", report{What: wrote, Election: "e", At: 150, Until: 155}})
	f := &faultsTeam{team: c, placements: []placement{{election: "e"}, {election: "other"}}}
	if got := f.effectsSince(50)[0]; !got.kept || got.back != 145-50 || got.gap != 145-60 {
		t.Errorf("%+v", got)
	}
	c.journal.Add(entry{"a", report{What: leads, Election: "e", At: 160}})
	if all := f.effectsSince(50); all[0].kept || !all[1].kept {
		t.Errorf("%+v", all)
	}
}

// TestKept: with a lease of 20 s, a graceful restart must keep all leaders.
func TestKept(t *testing.T) {
	for name, c := range map[string]struct {
		lease   time.Duration
		verdict string
	}{"frozen": {20 * time.Second, "MISSED"}, "killed": {10 * time.Second, ""},
		rolling: {time.Second, "MISSED"}} {
		p := placement{lease: c.lease}
		m := kept(name, []effect{{placement: p, kept: true, back: time.Second}, {placement: p}})[0]
		if m.verdict.String() != c.verdict || !strings.HasPrefix(m.value, "1 of 2; back 0 us") {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for victim, want := range []string{"the controller ", "the bucket's leader ", "another server "} {
		if got := role(1, victim, 0); got != want {
			t.Errorf("server %d is %s, want %s", victim, got, want)
		}
	}
}

// TestSteady checks the rates, their bounds and the cost of ten candidates with default settings.
func TestSteady(t *testing.T) {
	const elections, minutes = 20, 2
	x := steady{prices: map[string]float64{"PUT": 5e-6, "GET": 0.4e-6}}
	m := mode{requests: budget{"PUT": 12, "GET": 36, total: 48}}
	lines := x.lines(m, []counts{{"PUT": 12 * minutes * elections}, {"GET": 36 * minutes * elections}},
		1./minutes/elections)
	for i, want := range []string{"GET 36.0, PUT 12.0, all 48.0", "GET 36.0, PUT 12.0", "$3.21"} {
		if lines[i].value != want || lines[i].verdict > figures.Held {
			t.Errorf("%+v, want %s", lines[i], want)
		}
	}
	for _, c := range []struct {
		requests budget
		keeps    bool
		why      string
	}{
		{budget{"PUT": 12.4, "GET": 36}, true, "another one at the edge of the window"},
		{budget{"PUT": 14}, false, "too many writes"},
		{budget{"HEAD": 1}, true, "no bound"},
		{budget{total: 50}, false, "too many of all"},
	} {
		if got := c.requests.keeps(m.requests, 0.1); got != c.keeps {
			t.Errorf("%v: %t: %s", c.requests, got, c.why)
		}
	}
	if (budget{"GET": 0.1}).keeps(budget{"GET": 0}, 0.1) {
		t.Error("a request that must not happen was allowed")
	}
}

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
