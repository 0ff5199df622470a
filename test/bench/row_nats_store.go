package main

import (
	"fmt"

	"github.com/tenure-go/tenure/driver/natskv"
)

var replicaStoreRow = row{
	name:    "r3-store",
	title:   "NATS, three replicas: single operations of driver/natskv, one after another",
	note:    "From the call to its return, with a value of 300 bytes, over a connection to any of the servers",
	measure: replicaLatency,
}

func replicaLatency(b *bench) ([]measure, error) {
	r, err := b.replicated()
	if err != nil {
		return nil, err
	}
	bucket, err := r.newBucket(b)
	if err != nil {
		return nil, err
	}
	s, err := natskv.Open(b.ctx, r.js, bucket)
	if err != nil {
		return nil, err
	}
	reads, swaps, err := b.operations(s, b.pick(500, 5000))
	return []measure{
		{what: "Read", value: fmt.Sprint(reads)},
		{what: "CompareAndSwap", value: fmt.Sprint(swaps)},
	}, err
}
