package demo

import "time"

// printer tells what happens: to people, or to programs.
type printer interface {
	begin(at time.Time, o Options)
	// show tells one entry, and the failover that it completes if it does.
	show(e entry, f *failover)
	overlap(at time.Time, o overlap)
	end(at time.Time, s summary)
}

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
