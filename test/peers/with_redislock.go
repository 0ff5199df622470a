package main

import (
	"context"
	"sync/atomic"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

type redislockClient struct {
	*redislock.Client
	at place
}

func openRedislock(at place) (client, error) {
	c := redis.NewClient(&redis.Options{Addr: at.Address(), ContextTimeoutEnabled: true})
	return redislockClient{redislock.New(c), at}, nil
}

func (c redislockClient) Join(election string, elected, lost func()) (candidate, error) {
	ctx, stop := context.WithCancel(context.Background())
	r := &redislockCandidate{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for ; ctx.Err() == nil; pause(ctx, c.at.Lease/3) {
			lock, err := c.Obtain(ctx, c.at.Bucket+":"+election, c.at.Lease, nil)
			if err == nil {
				r.leads.Store(true)
				elected()
				c.hold(ctx, lock)
				r.leads.Store(false)
				lost()
				_ = lock.Release(context.Background())
			}
		}
	}()
	return r, nil
}

// hold refreshes the lock until that fails, or the candidate stops.
func (c redislockClient) hold(ctx context.Context, lock *redislock.Lock) {
	for err := error(nil); err == nil && ctx.Err() == nil; {
		pause(ctx, c.at.Lease/3)
		limit, cancel := context.WithTimeout(ctx, c.at.Lease/3)
		err = lock.Refresh(limit, c.at.Lease, nil)
		cancel()
	}
}

type redislockCandidate struct {
	leads atomic.Bool
	stop  context.CancelFunc
	ended chan struct{}
}

func (r *redislockCandidate) Leads() bool { return r.leads.Load() }

func (r *redislockCandidate) Stop() {
	r.stop()
	<-r.ended
}
