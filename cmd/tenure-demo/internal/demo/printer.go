package demo

import (
	"time"

	"github.com/tenure-go/tenure/internal/witness"
)

// printer reports the events, to people or to programs.
type printer interface {
	begin(at time.Time, o Options)
	// show tells one entry, and the failover that it completes if it does.
	show(e entry, f *failover)
	// see is for sights of the record, which have no words of their own, with the number of checked
	// acts.
	see(e entry, acts int)
	overlap(at time.Time, o witness.Overlap)
	// leave gives back the terminal that begin took, and is the last call before end. It returns
	// the reason if nothing could be shown, and may be called again.
	leave() error
	end(at time.Time, s summary)
}

// lineByLine holds the methods that printers without a terminal share.
type lineByLine struct{}

func (lineByLine) see(entry, int) {}
func (lineByLine) leave() error   { return nil }

// summary is the result of a demo.
type summary struct {
	lasted      time.Duration
	elections   int
	first, last uint64 // terms
	rows        []row
	failovers   int
	acts        int
	overlaps    int
}
