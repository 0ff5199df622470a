package main

import "time"

var replicaSteadyRow = row{
	name:    "r3-steady",
	title:   "NATS, three replicas: ten candidates in ten processes while nothing happens, lease 15 s, renewed every 5 s",
	note:    "Counted as in row steady, by the three servers",
	measure: replicaSteady,
}

func replicaSteady(b *bench) ([]measure, error) {
	window := time.Duration(b.pick(15, 60)) * time.Second
	c, err := b.onReplicas("r3-steady", candidates, steadyLease)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	if err := c.join(0, c.members...); err != nil {
		return nil, err
	}
	b.sleep(2 * time.Second) // the watches are set up
	got, err := c.count(window)
	if err != nil {
		return nil, err
	}
	return got.measures(window), nil
}
