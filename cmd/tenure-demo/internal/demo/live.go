package demo

import (
	"context"
	"os"
	"time"

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
