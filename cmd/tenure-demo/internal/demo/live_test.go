package demo

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/view"
	"github.com/tenure-go/tenure/internal/witness"
)

// drain closes the channel of facts and returns all facts in it.
func drain(l *live) []view.Fact {
	close(l.facts)
	var all []view.Fact
	for f := range l.facts {
		all = append(all, f)
	}
	return all
}

// now gives an entry the current time. Here the demo's clock is that of the machine.
func now(e entry) entry {
	e.at = stamp.Now()
	return e
}

func TestFactsOfTheView(t *testing.T) {
	o, begun := verboseOptions, time.Now()
	o.Verbose, o.Out = false, &bytes.Buffer{}
	l := newLive(o, func() {})
	crashed := &failover{kind: kindCrash, from: "c1", to: "c2", took: time.Second, least: 900 * time.Millisecond, known: true, most: 2 * time.Second}
	unknown := &failover{kind: kindOther, from: "c2", to: "c3", took: time.Second}
	for _, e := range []struct {
		entry
		f *failover
	}{
		{entry{deed: &deed{do: doStart, id: "c1", pid: 4711}}, nil},
		{library(t, 0, tenure.Event{Kind: tenure.EventCandidate, ID: "c1"}), nil},
		{library(t, 0, tenure.Event{Kind: tenure.EventElected, ID: "c1", Term: 1}), nil},
		// The view knows this already.
		{library(t, 0, tenure.Event{Kind: tenure.EventLeader, ID: "c2", Term: 1, Leader: tenure.Leader{ID: "c1"}}), nil},
		{entry{sight: &sight{held: true, term: 1, nonce: "n1", lease: time.Second, address: "h:1"}}, nil},
		// A request was added.
		{entry{sight: &sight{held: true, term: 1, nonce: "n1", lease: time.Second}}, nil},
		{entry{sight: &sight{term: 1, nonce: "n2"}}, nil},
		{entry{deed: &deed{do: doKill, id: "c1", term: 1}}, nil},
		{entry{deed: &deed{do: doPeer, id: "c2", text: "refused", expected: true}}, nil},
		{library(t, 0, tenure.Event{Kind: tenure.EventElected, ID: "c2", Term: 7}), crashed},
		{entry{deed: &deed{do: doStop, id: "c2", term: 7}}, nil},
		{library(t, 0, tenure.Event{Kind: tenure.EventReleased, ID: "c2", Term: 7}), nil},
		{library(t, 0, tenure.Event{Kind: tenure.EventElected, ID: "c3", Term: 9}), unknown},
		{library(t, 0, tenure.Event{Kind: tenure.EventReleased, ID: "c3", Term: 9, Cause: tenure.ErrHandOver}), nil},
		{library(t, 0, tenure.Event{Kind: tenure.EventTrouble, ID: "c3", Cause: errors.New("tenure: down")}), nil},
		// The same trouble again.
		{library(t, 0, tenure.Event{Kind: tenure.EventTrouble, ID: "c3", Cause: errors.New("tenure: down")}), nil},
	} {
		if e.sight != nil {
			l.see(now(e.entry), 12)
			continue
		}
		l.show(now(e.entry), e.f)
	}
	want := []view.Fact{
		{What: view.Started, Who: "c1", Text: "process 4711"},
		{What: view.Follows, Who: "c1"},
		{What: view.Elected, Who: "c1", Term: 1},
		{What: view.Renewed, Term: 1, Lease: time.Second, Address: "h:1"},
		{What: view.Checked, Text: "0 overlaps in 12 acts"},
		{What: view.Crashed, Who: "c1", Term: 1, Text: "the demo kills the leader (SIGKILL)"},
		{What: view.Elected, Who: "c2", Term: 7, Text: "crash", Took: time.Second, Least: 900 * time.Millisecond, Most: 2 * time.Second, Late: 1100 * time.Millisecond},
		{What: view.Asked, Who: "c2", Term: 7, Text: "the demo asks the leader to end (SIGTERM)"},
		{What: view.Released, Who: "c2", Term: 7},
		{What: view.Ended, Who: "c2"},
		{What: view.Elected, Who: "c3", Term: 9, Text: "other", Took: time.Second, Least: -1},
		{What: view.Released, Who: "c3", Term: 9, Text: "hand-over was asked for"},
		{What: view.Trouble, Who: "c3", Text: "down"},
	}
	got := drain(l)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			t.Fatalf("%d facts, want %d: %+v", len(got), len(want), got)
		}
		if at := got[i].At; at.Before(begun) || at.After(time.Now()) {
			t.Errorf("fact %d was at %v, not since %v", i, at, begun)
		}
		got[i].At = time.Time{}
		if got[i] != want[i] {
			t.Errorf("fact %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

// A terminal that hangs must block neither the election nor its end.
func TestFactsAreDroppedWhenTheViewHangs(t *testing.T) {
	o := verboseOptions
	o.Out = &bytes.Buffer{}
	l := newLive(o, func() {})
	for range 2 * factsWaiting {
		l.show(now(entry{deed: &deed{do: doResume, id: "c1"}}), nil)
	}
	if n := len(drain(l)); n != factsWaiting {
		t.Errorf("%d facts wait", n)
	}
}

// Lines after the live view number the terms as the view did.
func TestTermNumbersPersistAfterTheView(t *testing.T) {
	var out bytes.Buffer
	o := verboseOptions
	o.Out = &out
	l := newLive(o, func() {})
	l.shown = make(chan struct{})
	close(l.shown)
	l.show(library(t, 1, tenure.Event{Kind: tenure.EventElected, ID: "c1", Term: 7}), nil)
	l.show(library(t, 2, tenure.Event{Kind: tenure.EventElected, ID: "c2", Term: 9}), nil)
	l.show(library(t, 3, tenure.Event{Kind: tenure.EventAlarm, ID: "c2", Term: 9}), nil)
	if err := l.leave(); err != nil || !strings.Contains(out.String(), "#2 9") {
		t.Errorf("%v, and got:\n%s", err, out.String())
	}
}

// Alarms are printed again after the live view, up to a limit.
func TestAlarmsArePrintedAfterTheView(t *testing.T) {
	var out bytes.Buffer
	o := verboseOptions
	o.Out = &out
	l := newLive(o, func() {})
	l.shown = make(chan struct{})
	close(l.shown)
	l.overlap(wall(1), witness.Overlap{Older: witness.Span{Token: 7, Who: "c2 (process 4712)"}, Newer: witness.Span{Token: 9}})
	for range maxKept + 4 {
		l.show(now(entry{deed: &deed{time: wall(2), do: doOutput, id: "c1", text: "panic: oh"}}), nil)
	}
	if err := l.leave(); err != nil || l.leave() != nil {
		t.Error(err)
	}
	text := out.String()
	if !strings.HasPrefix(text, "12:00:00.001  !!! OVERLAP, two leaders at once: c2 (process 4712)") || strings.Count(text, "panic: oh") != maxKept-1 ||
		!strings.HasSuffix(text, "and 5 such lines more\n") {
		t.Errorf("got:\n%s", text)
	}
}
