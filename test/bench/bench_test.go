package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/test/internal/acts"
	"github.com/tenure-go/tenure/test/internal/figures"
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

// scripted is an experiment that does what a test wants.
type scripted func(t *trial)

func (scripted) about() about       { return about{"r", "a title", "A note"} }
func (x scripted) measure(t *trial) { x(t) }

// TestTable also checks that each row is named once.
func TestTable(t *testing.T) {
	all := table{results: []result{{row{&site{title: "Store"}, scripted(nil)},
		[]measure{{what: "x", value: "1 ms", verdict: figures.Missed}, {what: "y", verdict: figures.Held}}, "Noise"}}}
	var plain, markdown strings.Builder
	all.print(&plain, false)
	all.print(&markdown, true)
	for _, want := range []string{"| r | x | 1 ms |  | MISSED |", "|  | y |", "- r: Store: a title. A note. Noise."} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("the markdown lacks %q:\n%s", want, markdown.String())
		}
	}
	if !strings.Contains(plain.String(), "MISSED") {
		t.Errorf("the table lacks the verdict:\n%s", plain.String())
	}
}

// TestMeasure: an error makes a row unmeasured, which fails the command, and a busy machine makes it
// missed, which does not. The measures before the error stay, and the trial cleans up.
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
			t.report(measure{verdict: figures.Held})
			sideBySide(t, 2, func(_ *trial, i int) int {
				if i == 1 {
					check(c.err)
				}
				return i
			})
		})})
		got := (&table{results: []result{r}}).worst()
		if got != c.want || !ended || r.found[0].verdict != figures.Held {
			t.Errorf("%v: %v, want %v; ended %t; %+v", c.err, got, c.want, ended, r.found)
		}
	}
}

// TestUnsafe: two leaders, a falling token, an early election and a control without overlap fail the
// command; a missed bound does not.
func TestUnsafe(t *testing.T) {
	overlapping, safe := acts.Verdict{Stale: 1}, acts.Verdict{}
	for _, c := range []struct {
		measure
		fails bool
	}{
		{judgedLine("", overlapping, 1, ""), true},
		{judgedLine("", acts.Verdict{Regressed: 1}, 1, ""), true},
		{judgedLine("", safe, 1, ""), false},
		{none("early", 1, 2), true},
		{none("early", 0, 2), false},
		{controlled("x", func() (acts.Verdict, int) { return safe, 1 }), true},
		{controlled("x", func() (acts.Verdict, int) { return overlapping, 1 }), false},
		{timed("x", figures.Dist{time.Second}, within{max: time.Millisecond}, ""), false},
	} {
		if fails := c.verdict > figures.Missed; fails != c.fails {
			t.Errorf("%+v: fails %t", c.measure, fails)
		}
	}
}

func journalOf(all ...entry) *crew {
	c := &crew{trial: &trial{bench: &bench{log: io.Discard}}, journal: newJournal()}
	for _, e := range all {
		c.journal.add(e)
	}
	return c
}

// TestLastSend: a claim that replaces a request goes back to the leader's write that the request
// copied.
func TestLastSend(t *testing.T) {
	at, err := lastSend([]entry{
		{"dead", report{What: wrote, At: 10, Prev: "0", Version: "1"}},
		{"other", report{What: wrote, At: 20, Prev: "1", Version: "2"}},
		{"dead", report{What: sending, At: 25, Prev: "1"}}, // refused
		{"next", report{What: sending, At: 30, Prev: "2"}},
	}, "dead", entry{"next", report{What: leads, At: 40}})
	if at != 10 || err != nil {
		t.Errorf("sent at %d, %v; want 10", at, err)
	}
}

// TestUnanswered: the version that was replaced shows which write a killed leader made last.
func TestUnanswered(t *testing.T) {
	all := []entry{
		{"old", report{What: sending, At: 10, Prev: "0"}},
		{"old", report{What: sending, At: 20, Prev: "1"}},
		{"new", report{What: sending, At: 25, Prev: "9"}},
		{"old", report{What: sending, At: 30, Prev: "2"}},
	}
	for _, c := range []struct {
		replaced string
		want     int64
		why      string
	}{
		{"2", 20, "the last one went out from that version, so it is not what was replaced"},
		{"3", 30, "nothing went out from that version, so it is the last one's"},
	} {
		if got, err := unanswered(all, "old", c.replaced); err != nil || got != c.want {
			t.Errorf("version %s: %d, %v; want %d: %s", c.replaced, got, err, c.want, c.why)
		}
	}
	if _, err := unanswered(all, "another", "1"); err == nil {
		t.Error("a write was found of a member that made none")
	}
}

// TestLosses: the last write that was confirmed in time decides the deadline of a term.
func TestLosses(t *testing.T) {
	const lease = 2 * time.Second
	usable := int64(lease - tenure.Config{Lease: lease}.Margin())
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
			// confirmed too late
			entry{"a", report{What: wrote, Token: 2, At: 50 + usable - int64(lease/100), Until: 60 + usable}},
			// a release holds nothing
			entry{"a", report{What: wrote, Token: 2, At: 70 + usable, Until: 80 + usable, Released: true}},
			entry{"a", report{What: lost, Token: 2, At: 50 + usable + x.at, Expired: x.expired}})
		c.role.Lease = lease
		if got := c.losses(); got.lost != 1 || got.early != x.early || got.writes != 6 {
			t.Errorf("%+v, want %d early: %s", got, x.early, x.why)
		}
	}
}

// TestReap: kept is where no member was elected since, and a write counts from when it was sent.
func TestReap(t *testing.T) {
	c := journalOf(
		entry{"a", report{What: leads, Election: "e", At: 10}},
		entry{"a", report{What: wrote, Election: "e", At: 20, Until: 25}},
		entry{"a", report{What: wrote, Election: "e", At: 40, Until: 60}}, // sent before
		entry{"a", report{What: wrote, Election: "e", At: 70, Until: 145}},
		entry{"a", report{What: wrote, Election: "e", At: 150, Until: 155}})
	f := &field{crew: c, plots: []plot{{election: "e"}, {election: "other"}}}
	if got := f.reap(50)[0]; !got.kept || got.back != 145-50 || got.gap != 145-60 {
		t.Errorf("%+v", got)
	}
	c.journal.add(entry{"a", report{What: leads, Election: "e", At: 160}})
	if all := f.reap(50); all[0].kept || !all[1].kept {
		t.Errorf("%+v", all)
	}
}

// TestKept: a lease of 20 s and a restart in order must keep all leaders.
func TestKept(t *testing.T) {
	crops := []crop{{kept: true, back: time.Second}, {back: 3 * time.Second}}
	for b, verdict := range map[blow]string{
		{lease: 20 * time.Second, fault: "frozen"}: "MISSED", {lease: 10 * time.Second, fault: "frozen"}: "",
		{lease: 5 * time.Second, fault: rolling.name}: "MISSED",
	} {
		m := b.lines(crops)[0]
		if m.verdict.String() != verdict || m.value != "1 of 2; back 1.00 s / 1.00 s / 3.00 s / 3.00 s, n=2" {
			t.Errorf("%s: %+v", b, m)
		}
	}
	for victim, want := range []string{"the controller ", "the bucket's leader ", "another server "} {
		if got := role(1, victim, 0); got != want {
			t.Errorf("server %d is %s, want %s", victim, got, want)
		}
	}
}

// TestSteady: the rates, their bounds and the price of ten candidates by default.
func TestSteady(t *testing.T) {
	const elections, minutes = 20, 2
	x := steady{prices: map[string]float64{"PUT": 5e-6, "GET": 0.4e-6}}
	q := quiet{bounds: budget{"PUT": 12, "GET": 36, total: 48}}
	lines := x.lines(q, []counts{{"PUT": 12 * minutes * elections}, {"GET": 36 * minutes * elections}},
		1./minutes/elections)
	for i, want := range []string{"GET 36.0, PUT 12.0, all 48.0", "GET 36.0, PUT 12.0", "$3.21"} { // 12.96/5 + 1.04*9/15
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
		if got := c.requests.keeps(q.bounds, 0.1); got != c.keeps {
			t.Errorf("%v: %t: %s", c.requests, got, c.why)
		}
	}
	if (budget{"GET": 0.1}).keeps(budget{"GET": 0}, 0.1) {
		t.Error("a request that must not happen was allowed")
	}
}
