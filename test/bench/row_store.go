package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/figures"
)

var storeRow = row{
	name:    "store",
	title:   "single operations of driver/natskv, one after another",
	note:    "From the call to its return, with a value of 300 bytes",
	measure: latency,
}

func latency(b *bench) ([]measure, error) {
	n := b.pick(1000, 5000)
	bucket, err := b.bucket()
	if err != nil {
		return nil, err
	}
	s, err := natskv.Open(b.ctx, b.js, bucket)
	if err != nil {
		return nil, err
	}
	reads, swaps, err := b.operations(s, n)
	return []measure{
		{what: "Read", value: fmt.Sprint(reads)},
		{what: "CompareAndSwap", value: fmt.Sprint(swaps)},
	}, err
}

// operations swaps a cell and reads it, again and again.
func (b *bench) operations(s driver.Store, n int) (reads, swaps figures.Dist, err error) {
	e, err := s.Read(b.ctx, "cell")
	for version := e.Version; err == nil && len(swaps) < n; {
		began := time.Now()
		if version, err = s.CompareAndSwap(b.ctx, "cell", version, make([]byte, 300)); err != nil {
			break
		}
		swapped := time.Now()
		_, err = s.Read(b.ctx, "cell")
		swaps, reads = append(swaps, swapped.Sub(began)), append(reads, time.Since(swapped))
	}
	return reads, swaps, err
}
