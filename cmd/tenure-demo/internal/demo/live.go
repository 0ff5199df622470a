package demo

import (
	"context"
	"os"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/view"
	"github.com/tenure-go/tenure/internal/witness"
)

// live shows the election on a terminal, drawn again all the time. The lines that human prints at
// the beginning and at the end come before and after.
type live struct {
	*human
	in, screen *os.File
	quit       func() // ends the demo, because the user wants no more

	facts  chan view.Fact
	shown  chan struct{} // closed when the terminal is given back; nil before it is taken
	broken error         // why there was no picture; to be read after that

	asked    map[string]bool // processes that end when they have released their lease
	nonce    string
	overlaps int
	kept     keeper
}

// factsWaiting may be many, since a terminal may hang. More are dropped: the election is not to
// wait for it.
const factsWaiting = 4096

func newLive(o Options, quit func()) *live {
	in, _ := o.In.(*os.File)
	screen, _ := o.Out.(*os.File)
	h := newHuman(o)
	return &live{
		human: h, in: in, screen: screen, quit: quit,
		facts: make(chan view.Fact, factsWaiting), asked: map[string]bool{}, kept: newKeeper(o, h.terms),
	}
}

// begin takes the terminal.
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

// hints are short enough for a terminal of eighty columns, as far as the names of the place are.
func hints(o Options) []string {
	try := o.Place.Commands(o.Election)
	all := []string{"look in:   " + try.Look}
	if try.Delete != "" {
		all = append(all, "fail over: "+try.Delete)
	}
	return all
}

// leave gives the terminal back.
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

// tell never waits. Facts are dropped after the terminal has been given back.
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
