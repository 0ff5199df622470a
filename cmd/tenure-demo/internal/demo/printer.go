package demo

import (
	"time"

	"github.com/tenure-go/tenure/internal/witness"
)

// printer reports the entries, as text or as JSON.
type printer interface {
	begin(at time.Time, o Options)
	// show reports one entry, and the failover that it completes, if any.
	show(e entry, f *failover)
	// see is called for a sight of the record, for which there is no line, with the number of
	// checked acts.
	see(e entry, acts int)
	overlap(at time.Time, o witness.Overlap)
	// leave restores the terminal, and is the last call before end. It returns an error if the view
	// failed. It may be called again.
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
