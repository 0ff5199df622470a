package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// replicas are a cluster of three NATS servers, with a connection of the bench.
type replicas struct {
	*natsd.Cluster
	nc *nats.Conn
	js jetstream.JetStream
}

// replicated is the cluster that rows of replicated buckets use unless they part it, started at the first need.
func (b *bench) replicated() (_ *replicas, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.direct == nil {
		b.direct, err = b.replicas("direct", natsd.StartCluster)
	}
	return b.direct, err
}

// parted is one whose routes can be cut.
func (b *bench) parted() (_ *replicas, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.partible == nil {
		b.partible, err = b.replicas("partible", natsd.StartPartible)
	}
	return b.partible, err
}

func (b *bench) replicas(name string, start func(dir string) (*natsd.Cluster, error)) (*replicas, error) {
	c, err := start(filepath.Join(b.dir, name))
	if err != nil {
		return nil, err
	}
	r := &replicas{Cluster: c}
	if err := r.connect(b.ctx); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

func (r *replicas) connect(ctx context.Context) (err error) {
	if err := r.Ready(ctx); err != nil {
		return err
	}
	if r.nc, err = nats.Connect(r.url(0), nats.Name("bench"), nats.MaxReconnects(-1)); err != nil {
		return err
	}
	r.js, err = jetstream.New(r.nc)
	return err
}

// url is all servers, one of them first.
func (r *replicas) url(first int) string {
	all := r.URLs()
	return strings.Join(append(all[first:len(all):len(all)], all[:first]...), ",")
}

func (r *replicas) end() {
	if r.nc != nil {
		r.nc.Close()
	}
	r.Kill()
}

func (b *bench) endReplicas() {
	for _, r := range []*replicas{b.direct, b.partible} {
		if r != nil {
			r.end()
		}
	}
}

// newBucket makes a fresh one on all servers.
func (r *replicas) newBucket(b *bench) (string, error) {
	b.mu.Lock()
	b.buckets++
	name := fmt.Sprintf("ELECTIONS_%d", b.buckets)
	b.mu.Unlock()
	if err := r.create(b.ctx, name); err != nil {
		return "", err
	}
	return name, r.Whole(b.ctx, "KV_"+name)
}

// create makes a bucket. A cluster that has no leader yet gives no answer, and is asked again.
func (r *replicas) create(ctx context.Context, bucket string) error {
	for {
		asking, cancel := context.WithTimeout(ctx, attempt)
		_, err := natskv.Open(asking, r.js, bucket, natskv.Create(natskv.Replicas(natsd.Members)))
		unanswered := asking.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !unanswered {
			return err
		}
	}
}

// replicaCast is a cast on a cluster in which each member has a connection for its elections alone, the first of them to the
// first server, and so on.
func (b *bench) replicaCast(r *replicas, name string, n int, role command) (*cast, error) {
	c := &cast{b: b, name: name, journal: newJournal(), role: role, ready: watchSetUp, as: identity{Own: true}, on: r}
	for i := range r.Servers {
		c.urls = append(c.urls, r.url(i))
	}
	return c, c.hire(n)
}
