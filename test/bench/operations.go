package main

import (
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/test/internal/figures"
)

// operations measures single operations of a store.
type operations struct {
	n    choice[int]
	swap figures.Bound
}

func (operations) about() about {
	return about{"store", "single operations of the store, one after another",
		"From the call to its return, with a value of 300 bytes"}
}

func (x operations) measure(t *trial) {
	on, bucket := t.shared(), t.unique("store")
	on.create(t.ctx, bucket)
	reads, swaps := measureOperations(t, t.open(on, bucket), pick(t.bench, x.n))
	t.report(timed("Read", reads, figures.Bound{}, ""), timed("CompareAndSwap", swaps, x.swap, ""))
}

// measureOperations writes a cell and reads it, n times.
func measureOperations(t *trial, s driver.Store, n int) (reads, swaps figures.Dist) {
	version := must(s.Read(t.ctx, "cell")).Version
	for range n {
		began := time.Now()
		version = must(s.CompareAndSwap(t.ctx, "cell", version, make([]byte, 300)))
		swapped := time.Now()
		must(s.Read(t.ctx, "cell"))
		swaps, reads = append(swaps, swapped.Sub(began)), append(reads, time.Since(swapped))
	}
	return reads, swaps
}
