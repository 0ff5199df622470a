package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/test/internal/figures"
)

// TestLosses: a term may be lost at its deadline, which the last write decides that was confirmed in time.
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
		c := &cast{b: &bench{log: io.Discard}, journal: newJournal(), role: command{Lease: lease}}
		say := func(who string, r report) {
			r.Election = "e"
			c.journal.add(entry{who, r})
		}
		say("a", report{What: wrote, Token: 1, At: 90, Until: 95})
		say("a", report{What: wrote, Token: 2, At: 20, Until: 25})
		say("a", report{What: wrote, Token: 2, At: 50, Until: 55})
		say("b", report{What: wrote, Token: 2, At: 70, Until: 75})
		say("a", report{What: wrote, Token: 2, At: 50 + usable - int64(lease/100), Until: 60 + usable}) // confirmed too late
		say("a", report{What: wrote, Token: 2, At: 70 + usable, Until: 80 + usable, Released: true})    // holds nothing
		say("a", report{What: lost, Token: 2, At: 50 + usable + x.at, Expired: x.expired})
		if got := c.losses(); got.lost != 1 || got.early != x.early || got.writes != 6 {
			t.Errorf("%+v, want %d early: %s", got, x.early, x.why)
		}
	}
}

// TestBill: the rates and the price of ten candidates by default.
func TestBill(t *testing.T) {
	const minutes = 2
	c := &cast{members: []*member{{counter: &counter{all: map[request]int{}}}, {counter: &counter{all: map[request]int{}}}}}
	for i := range steadyElections {
		election := fmt.Sprint(i)
		c.members[0].counter.all[request{"PUT", election}] = 12 * minutes
		c.members[1].counter.all[request{"GET", election}] = 36 * minutes
	}
	got := c.bill(minutes)
	if got.String() != "12.00 / 36.00 / 0.00, n=20" || got.busiest != 36 || got.perFollower() != 4 {
		t.Errorf("%v, %v, %v", got, got.busiest, got.perFollower())
	}
	if price := fmt.Sprintf("%.2f", got.month()); price != "3.21" { // 12.96/5 + 1.04*9/15
		t.Errorf("$%s a month", price)
	}
}

// TestUnanswered: which write a killed leader made last is known from what replaced it.
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
	if _, err := unanswered(all, "nobody", "1"); err == nil {
		t.Error("a write was found of somebody who made none")
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
		says string
	}{
		{"-rows", exitOK, "crash"},
		{"-rows -row s3", exitOK, "s3-crash"},
		{"-rows -row crash,s3", exitOK, "s3-crash"},
		{"-row crash,", exitUsage, "there is no row"},
		{"-row nonsense", exitUsage, "there is no row"},
		{"stray", exitUsage, ""},
	} {
		var out strings.Builder
		if got := run(t.Context(), strings.Fields(c.args), &out, &out); got != c.want || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit %d, %q; want %d, %q", c.args, got, out.String(), c.want, c.says)
		}
	}
}

func TestTable(t *testing.T) {
	table := table{}
	table.add(result{row{name: "r", title: "a title", note: "A note"},
		[]measure{{what: "x", value: "1 ms", verdict: figures.Missed}, {what: "y", verdict: figures.Held}}, "Noise"})
	var plain, markdown strings.Builder
	table.print(&plain, false)
	table.print(&markdown, true)
	if table.worst() != figures.Missed {
		t.Errorf("worst: %v", table.worst())
	}
	for _, want := range []string{"| r | x | 1 ms |  | MISSED |", "|  | y |", "- r: a title. A note. Noise."} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("the markdown lacks %q:\n%s", want, markdown.String())
		}
	}
	if !strings.Contains(plain.String(), "MISSED") {
		t.Errorf("the table lacks the verdict:\n%s", plain.String())
	}
}

// TestTry: an error makes a row unmeasured, which fails the command, and a busy machine makes it missed, which does not.
func TestTry(t *testing.T) {
	for _, c := range []struct {
		err  error
		want figures.Verdict
	}{
		{nil, figures.Held},
		{fmt.Errorf("measuring: %w", errNotLeading), figures.Missed},
		{errors.New("x"), figures.Unmeasured},
	} {
		b := &bench{log: io.Discard}
		r := b.try(row{measure: func(*bench) ([]measure, error) { return []measure{{verdict: figures.Held}}, c.err }})
		if got := (&table{results: []result{r}}).worst(); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// TestLastSend: a claim that replaces a request goes back to the leader's write that the request copied.
func TestLastSend(t *testing.T) {
	c := &cast{journal: newJournal()}
	say := func(who string, r report) { c.journal.add(entry{who, r}) }
	say("dead", report{What: wrote, At: 10, Prev: "0", Version: "1"})
	say("other", report{What: wrote, At: 20, Prev: "1", Version: "2"})
	say("dead", report{What: sending, At: 25, Prev: "1"}) // refused
	say("next", report{What: sending, At: 30, Prev: "2"})
	if at, err := c.lastSend("dead", entry{"next", report{What: leads, At: 40}}); at != 10 || err != nil {
		t.Errorf("sent at %d, %v; want 10", at, err)
	}
}
