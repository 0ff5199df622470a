package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver/natskv"
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
	e, err := s.Read(b.ctx, "cell")
	if err != nil {
		return nil, err
	}
	var reads, swaps dist
	for version := e.Version; len(swaps) < n; {
		began := time.Now()
		if version, err = s.CompareAndSwap(b.ctx, "cell", version, make([]byte, 300)); err != nil {
			return nil, err
		}
		swapped := time.Now()
		if _, err = s.Read(b.ctx, "cell"); err != nil {
			return nil, err
		}
		swaps, reads = append(swaps, swapped.Sub(began)), append(reads, time.Since(swapped))
	}
	return []measure{
		{what: "Read", value: fmt.Sprint(reads)},
		{what: "CompareAndSwap", value: fmt.Sprint(swaps)},
	}, nil
}
