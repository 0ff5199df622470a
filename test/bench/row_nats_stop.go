package main

import (
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var replicaStopRow = row{
	name:    "r3-stop",
	title:   "NATS, three replicas: the leader is stopped gracefully (the context of Run ends), three candidates, lease 15 s",
	note:    "The measure is that of row stop",
	measure: replicaStop,
}

func replicaStop(b *bench) ([]measure, error) {
	c, err := b.onReplicas("r3-stop", 3, 15*time.Second)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	d, err := c.handovers(b.pick(30, 1000))
	return []measure{{what: "release sent to next leader", value: d.String(), bound: "median 10 ms",
		verdict: figures.Within(d.Median() <= 10*time.Millisecond), before: "54 s", others: "etcd 12 ms, client-go up to 4.4 s"}}, err
}

// onReplicas hires members for one election in a fresh bucket. They are dismissed by dismiss, whatever happens.
func (b *bench) onReplicas(name string, members int, lease time.Duration) (*cast, error) {
	r, err := b.replicated()
	if err != nil {
		return &cast{}, err
	}
	bucket, err := r.newBucket(b)
	if err != nil {
		return &cast{}, err
	}
	return b.replicaCast(r, name, members, command{Do: start, Bucket: bucket, Elections: []string{name}, Lease: lease})
}
