package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// redisMode has the requests of a healthy election: the leader's writes, and one read of each
// follower in ten leases.
var redisMode = mode{requests: budget{"script that writes": 12, "script that reads": 0.5 * (candidates - 1)}}

var redisSite = site{
	name: "redis", title: "Redis, appendonly, appendfsync always", rig: "redis",
	calls: calls{write: "script that writes", read: "script that reads"},
	rows: func() []experiment {
		modes, lease := []mode{redisMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
		return []experiment{
			operations{n: choice[int]{200, 2000}},
			crash{modes: modes, lease: always(5 * time.Second), groups: always(6), rounds: choice[int]{1, 10},
				late: figures.Bound{Median: 10 * time.Millisecond}},
			stops{lease: lease, of: []stopping{{mode: redisMode, rounds: choice[int]{40, 300}}},
				late: figures.Bound{Median: 10 * time.Millisecond}},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{10, 20},
				note: "Calls of the store by the elections of each process"},
			cut(strike{modes: modes, lease: 2 * time.Second, groups: always(5), rounds: choice[int]{1, 10}}),
			outage{modes: modes, elections: 20, lease: 2 * time.Second, rounds: choice[int]{1, 3}},
			crowd{modes: modes, elections: []int{1000}, window: choice[int]{5, 60}},
			lock{rounds: choice[int]{2, 10}},
		}
	},
}

// lock is a common lock: SET NX PX with a token, refreshed at a third of its life. The client has
// its default settings.
type lock struct{ rounds choice[int] }

const (
	lockLife  = 2 * time.Second
	lockPolls = 100 * time.Millisecond
)

func (lock) about() about {
	return about{"lock", "a common lock (bsm/redislock over go-redis) with a life of 2 s, refreshed at a third of it, beside elections",
		"Another process tries every 100 ms. The holder is cut off: every byte is lost. It works until a refresh fails"}
}

func (x lock) measure(t *trial) {
	address := t.shared().Addresses()[0]
	var late, both figures.Dist
	rounds := pick(t.bench, x.rounds)
	for range rounds {
		after, overlap := x.cut(t, address)
		late = append(late, after)
		if overlap > 0 {
			both = append(both, overlap)
		}
	}
	t.report(timed("the life of a lost lock to the next holder", late, figures.Bound{}, ""),
		measure{what: "cuts after which two worked", value: fmt.Sprintf("%d of %d, for %s at the median", len(both), rounds, figures.Show(both.Median()))})
}

// cut returns how late the next holder obtains the lock, and for how long both work.
func (x lock) cut(t *trial, address string) (late, overlap time.Duration) {
	r := must(relay.New("tcp://" + address))
	defer r.Close()
	_, via, _ := strings.Cut(r.URL(), "//")
	first, second := redis.NewClient(&redis.Options{Addr: via}), redis.NewClient(&redis.Options{Addr: address})
	defer func() { _, _ = first.Close(), second.Close() }()
	name := t.unique("lock")
	held := must(redislock.New(first).Obtain(t.ctx, name, lockLife, nil))
	refreshed, ended := make(chan time.Time, 1), make(chan time.Time, 1)
	go func() {
		last := time.Now()
		for ; t.ctx.Err() == nil; rig.Sleep(t.ctx, lockLife/3) {
			begun := time.Now()
			if held.Refresh(context.Background(), lockLife, nil) != nil {
				break
			}
			last = begun
		}
		refreshed <- last
		ended <- time.Now()
	}()
	t.sleep(lockLife)
	r.Blackhole()
	wait := redislock.LinearBackoff(lockPolls)
	ctx, cancel := context.WithTimeout(t.ctx, 10*lockLife)
	defer cancel()
	next := must(redislock.New(second).Obtain(ctx, name, lockLife, &redislock.Options{RetryStrategy: wait}))
	obtained := time.Now()
	last := <-refreshed
	over := <-ended
	_ = next.Release(t.ctx) // it may have expired while the first one worked
	return obtained.Sub(last.Add(lockLife)), max(0, over.Sub(obtained))
}
