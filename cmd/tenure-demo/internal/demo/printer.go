package demo

import (
	"time"

	"github.com/tenure-go/tenure/internal/witness"
)

// printer tells what happens: to people, or to programs.
type printer interface {
	begin(at time.Time, o Options)
	// show tells one entry, and the failover that it completes if it does.
	show(e entry, f *failover)
	// see is for sights of the record, of which there is nothing to tell in words, after so many checked acts.
	see(e entry, acts int)
	overlap(at time.Time, o witness.Overlap)
	// leave gives back what begin took, and is the last before end. It returns why there was nothing to be seen, and may be
	// called again.
	leave() error
	end(at time.Time, s summary)
}

// lineByLine is what those printers share that need no terminal.
type lineByLine struct{}

func (lineByLine) see(entry, int) {}
func (lineByLine) leave() error   { return nil }

// summary is what a demo has found.
type summary struct {
	lasted      time.Duration
	elections   int
	first, last uint64 // terms
	rows        []row
	failovers   int
	acts        int
	overlaps    int
}
