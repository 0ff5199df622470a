package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rigs"
)

// result holds the measurements of a peer.
type result struct {
	peer
	lease    time.Duration
	outcomes []outcome
	requests float64 // per minute
	crowd    crowd
	failures []error
}

// bench holds the servers, and the results so far.
type bench struct {
	options
	ctx     context.Context
	log     io.Writer
	servers map[string]rig.Running // by store

	mu      sync.Mutex
	names   int
	results map[int]*result // by index of the peer
}

// bucket is the name of the bucket, table or prefix.
const bucket = "peers"

// measureAll starts the servers and measures the chosen peers.
func measureAll(ctx context.Context, o options, chosen []int, log io.Writer) (all []*result, err error) {
	b := &bench{options: o, ctx: ctx, log: log, servers: map[string]rig.Running{}, results: map[int]*result{}}
	dir, err := os.MkdirTemp("", "tenure-peers-")
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, s := range b.servers {
			s.End()
		}
		_ = os.RemoveAll(dir)
	}()
	for _, i := range chosen {
		b.results[i] = &result{peer: peers[i], lease: o.lease}
		if err := b.start(dir, peers[i].store); err != nil {
			return nil, fmt.Errorf("%s: %w", peers[i].store, err)
		}
		all = append(all, b.results[i])
	}
	around := figures.Listen()
	b.strikes(chosen)
	for _, i := range chosen {
		b.crowd(i)
	}
	fmt.Fprintln(log, around.End())
	return all, ctx.Err()
}

// start starts the server of a store, if it does not run yet.
func (b *bench) start(dir, store string) error {
	if b.servers[store] != nil {
		return nil
	}
	dir = filepath.Join(dir, store)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	s, err := rigs.Kind(store).Start(b.ctx, dir)
	if err != nil {
		return err
	}
	b.servers[store] = s
	return s.Create(b.ctx, bucket)
}

// trial returns a trial of a peer.
func (b *bench) trial(i int, lease time.Duration) *trial {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names++
	name, s := fmt.Sprint("e", b.names), b.servers[peers[i].store]
	at := place{rig.Connector{ID: name, Addresses: s.Addresses()}, bucket, lease}
	t := &trial{ctx: b.ctx, peer: i, servers: s, at: at}
	if peers[i].alone {
		t.at.Bucket = name
	}
	return t
}

// strikes measures all strikes and the requests, several at the same time, in an order that spreads
// the load of the machine over all peers.
func (b *bench) strikes(chosen []int) {
	jobs := make(chan func())
	var workers sync.WaitGroup
	for range b.atOnce {
		workers.Go(func() {
			for job := range jobs {
				job()
			}
		})
	}
	for _, i := range chosen {
		if !peers[i].direct {
			jobs <- func() { b.steady(i) }
		}
	}
	for range b.runs {
		for _, what := range strikes {
			for _, i := range chosen {
				if what != cut || !peers[i].direct {
					jobs <- func() { b.strike(i, what) }
				}
			}
		}
	}
	close(jobs)
	workers.Wait()
}

// attempts bounds the repetitions of a measurement before which the leader changed.
const attempts = 8

func (b *bench) strike(i int, what strike) {
	var o outcome
	err := errUnsettled
	for try := 0; try < attempts && errors.Is(err, errUnsettled); try++ {
		o, err = b.trial(i, b.lease).measure(what)
	}
	if errors.Is(err, errUnsettled) && peers[i].name != tenureName {
		o.unsettled, err = true, nil // a result, not a failure
	}
	b.note(i, string(what), err, func(r *result) { r.outcomes = append(r.outcomes, o) })
	fmt.Fprintf(b.log, "%s on %s: %s: %t after %v, %d stale, up to %v\n", peers[i].name, peers[i].store, what, o.next, o.took, o.Stale, o.Overlap)
}

func (b *bench) steady(i int) {
	requests, err := b.trial(i, b.lease).steady(4 * b.lease)
	b.note(i, "steady", err, func(r *result) { r.requests = requests })
}

// crowdLease is the lease of the elections of one process: the default of Tenure and client-go.
const crowdLease = 15 * time.Second

func (b *bench) crowd(i int) {
	n := b.elections
	if most := peers[i].most; most > 0 {
		n = min(n, most)
	}
	lease := crowdLease
	if b.quick {
		lease = b.lease
	}
	c, err := b.trial(i, lease).crowd(n)
	b.note(i, "crowd", err, func(r *result) { r.crowd = c })
	fmt.Fprintf(b.log, "%s on %s: %+v\n", peers[i].name, peers[i].store, c)
}

// note notes a measurement, or its error.
func (b *bench) note(i int, what string, err error, note func(*result)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		fmt.Fprintf(b.log, "%s on %s: %s: %v\n", peers[i].name, peers[i].store, what, err)
		b.results[i].failures = append(b.results[i].failures, fmt.Errorf("%s: %w", what, err))
		return
	}
	note(b.results[i])
}
