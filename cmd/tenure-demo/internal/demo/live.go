package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/view"
	"github.com/tenure-go/tenure/internal/witness"
)

// live shows the election as a live view on a terminal. The lines that human prints at the
// beginning and at the end come before and after it.
type live struct {
	*human
	in, screen *os.File
	quit       func() // ends the demo, after the user has ended the view

	facts  chan view.Fact
	shown  chan struct{} // closed when the view has ended; nil before it begins
	broken error         // the error of the view; read it after shown is closed

	asked    map[string]bool // by ID: the process ends after it has released its lease
	nonce    string
	overlaps int
	kept     keptLines
}

// factsWaiting is the maximum number of facts that wait for the terminal, which may hang. More are
// dropped, so that the election does not wait for the terminal.
const factsWaiting = 4096

func newLive(o Options, quit func()) *live {
	in, _ := o.In.(*os.File)
	screen, _ := o.Out.(*os.File)
	h := newHuman(o)
	return &live{
		human: h, in: in, screen: screen, quit: quit,
		facts: make(chan view.Fact, factsWaiting), asked: map[string]bool{}, kept: newKeptLines(o, h.terms),
	}
}

// begin starts the view.
func (l *live) begin(at time.Time, o Options) {
	l.introduce(o)
	s := view.Screen{
		Title: "tenure-demo", Place: o.Place.String(), Election: o.Election, Lease: o.Lease, Renew: o.Renew,
		Hints: hints(o), Began: at, Colour: o.Colour,
	}
	for i := range o.Candidates {
		s.Members = append(s.Members, o.spec(i+1, o.Place).ID)
	}
	l.shown = make(chan struct{})
	go func() {
		defer close(l.shown)
		l.broken = view.Run(context.Background(), l.in, l.screen, s, l.facts)
		l.quit()
	}()
}

// hints returns commands that fit into eighty columns, unless the names in them are long.
func hints(o Options) []string {
	try := o.Place.Commands(o.Election)
	all := []string{"look in:   " + try.Look}
	if try.Delete != "" {
		all = append(all, "fail over: "+try.Delete)
	}
	return all
}

// leave ends the view, and restores the terminal.
func (l *live) leave() error {
	if l.shown == nil {
		return nil
	}
	if l.facts != nil {
		close(l.facts)
		l.facts = nil
		<-l.shown
		l.kept.print(l.out)
	}
	return l.broken
}

// tell never waits. It drops facts after the view has ended.
func (l *live) tell(f view.Fact) {
	select {
	case l.facts <- f:
	default:
	}
}

func (l *live) overlap(at time.Time, o witness.Overlap) {
	l.overlaps++
	l.kept.overlap(at, o)
	l.tell(view.Fact{At: at, What: view.Overlap, Who: idOf(o.Newer), Term: o.Newer.Token, Text: o.String()})
}

// moment returns the time of day at a stamp.
func moment(at stamp.Time) time.Time {
	return time.Now().Add(-stamp.Now().Sub(at))
}

// The facts of the view for deeds and events. Other deeds and events are not shown.
var (
	factsOfDeeds = map[do]view.What{
		doStart: view.Started, doKill: view.Crashed, doPause: view.Frozen, doResume: view.Woken, doStop: view.Asked,
		doDied: view.Crashed, doOutput: view.Trouble, doStore: view.Trouble, doPeer: view.Trouble,
		doAdvise: view.Note, doUnseen: view.Note,
	}
	factsOfEvents = map[tenure.EventKind]view.What{
		tenure.EventCandidate: view.Follows, tenure.EventElected: view.Elected, tenure.EventLeaving: view.Leaving,
		tenure.EventReleased: view.Released, tenure.EventLost: view.Lost, tenure.EventOverdue: view.Alarm,
		tenure.EventAlarm: view.Alarm, tenure.EventFailed: view.Alarm, tenure.EventTrouble: view.Trouble,
	}
)

func (l *live) show(e entry, f *failover) {
	switch {
	case e.deed != nil && !e.deed.expected:
		l.showDeed(e)
	case e.event != nil && !l.repetitive(e.event):
		l.showEvent(e, f)
	}
}

func (l *live) showDeed(e entry) {
	d := e.deed
	what, ok := factsOfDeeds[d.do]
	if !ok {
		return
	}
	l.asked[d.id] = d.do == doStop || l.asked[d.id] && d.do != doStart
	l.tell(view.Fact{At: moment(e.at), What: what, Who: d.id, Term: d.term, Text: d.tell(l.lease)})
	switch d.do {
	case doOutput, doAdvise:
		l.kept.show(e)
	}
}

func (l *live) showEvent(e entry, f *failover) {
	what, ok := factsOfEvents[e.event.Kind]
	if !ok {
		return
	}
	fact := view.Fact{At: moment(e.at), What: what, Who: e.event.ID, Term: e.event.Term, Text: l.why(e.event, nil)}
	if f != nil {
		fact.Text, fact.Took, fact.Least, fact.Most = string(f.kind), f.took, f.least, f.most
		fact.Late = max(0, f.most-f.least)
		if !f.known {
			fact.Least = -1
		}
	}
	if what == view.Elected {
		l.terms.name(e.event.Term) // counts the term, as the view does
	}
	l.tell(fact)
	switch {
	case what == view.Released && l.asked[fact.Who]:
		l.tell(view.Fact{At: fact.At, What: view.Ended, Who: fact.Who})
	case what == view.Alarm:
		l.kept.show(e)
	}
}

// see shows a renewal, and the number of checks so far.
func (l *live) see(e entry, acts int) {
	s := e.sight
	if !s.held || s.nonce == l.nonce {
		return
	}
	l.nonce = s.nonce
	at := moment(e.at)
	l.tell(view.Fact{At: at, What: view.Renewed, Term: s.term, Lease: s.lease, Address: s.address})
	l.tell(view.Fact{At: at, What: view.Checked, Text: count(l.overlaps, "overlap") + " in " + count(acts, "act")})
}

// keptLines keeps lines that are printed again after the live view has ended.
type keptLines struct {
	*human
	text  *bytes.Buffer
	lines int
}

// maxKept is the maximum number of lines.
const maxKept = 100

func newKeptLines(o Options, terms ordinals) keptLines {
	text := &bytes.Buffer{}
	o.Out = text
	h := newHuman(o)
	h.terms = terms
	return keptLines{human: h, text: text}
}

// room counts one more line, and reports whether it may be kept.
func (k *keptLines) room() bool {
	k.lines++
	return k.lines <= maxKept
}

func (k *keptLines) overlap(at time.Time, o witness.Overlap) {
	if k.room() {
		k.human.overlap(at, o)
	}
}

func (k *keptLines) show(e entry) {
	if k.room() {
		k.human.show(e, nil)
	}
}

func (k *keptLines) print(out io.Writer) {
	fmt.Fprint(out, k.text)
	if more := k.lines - maxKept; more > 0 {
		fmt.Fprintf(out, "and %s more\n", count(more, "such line"))
	}
}
