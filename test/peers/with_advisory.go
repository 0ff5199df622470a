package main

import (
	"context"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// advisoryClient waits for each lock on a connection of its own, since a lock belongs to a session.
type advisoryClient struct{ at place }

func openAdvisory(at place) (client, error) { return advisoryClient{at}, nil }

func (c advisoryClient) Join(election string, elected, lost func()) (candidate, error) {
	name := fnv.New64a()
	_, _ = name.Write([]byte(c.at.Bucket + "/" + election))
	ctx, stop := context.WithCancel(context.Background())
	a := &advisoryCandidate{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		for ; ctx.Err() == nil; pause(ctx, c.at.Lease/10) {
			a.term(ctx, c.at, int64(name.Sum64()), elected, lost)
		}
	}()
	return a, nil
}

type advisoryCandidate struct {
	leads atomic.Bool
	stop  context.CancelFunc
	ended chan struct{}
}

// term waits for the lock, and holds it while the session answers. A lost session is noticed by a
// statement without an answer. The end of the connection frees the lock.
func (a *advisoryCandidate) term(ctx context.Context, at place, lock int64, elected, lost func()) {
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+at.Address()+"/postgres")
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lock); err != nil {
		return
	}
	a.leads.Store(true)
	elected()
	for err == nil {
		pause(ctx, at.Lease/3)
		limit, cancel := context.WithTimeout(ctx, at.Lease/3)
		err = conn.Ping(limit)
		cancel()
	}
	a.leads.Store(false)
	lost()
}

// pause sleeps, or returns early when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (a *advisoryCandidate) Leads() bool { return a.leads.Load() }

func (a *advisoryCandidate) Stop() {
	a.stop()
	<-a.ended
}
