package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

var natsSite = site{
	title: "NATS", rig: "nats", rows: func() []experiment {
		return []experiment{
			crash{prefix: "busy-", modes: plain, lease: always(2 * time.Second), groups: always(8), rounds: choice[int]{1, 5},
				busy: 6, late: figures.Bound{Max: 200 * time.Millisecond}},
			crash{modes: plain, lease: always(5 * time.Second), groups: always(6),
				rounds: choice[int]{1, 10}, others: natsCrash,
				late: figures.Bound{Median: 25 * time.Millisecond}},
			stops{of: []stopping{{rounds: choice[int]{300, 1000}}}, lease: always(15 * time.Second),
				late:   figures.Bound{Median: 5 * time.Millisecond, P99: 20 * time.Millisecond},
				others: natsStop},
			fresh{figures.Bound{Max: 20 * time.Millisecond}, "nats-kv-leader-elect 22.6 to 26.6 s"},
			natsSteady,
			pause(strike{modes: plain, elections: 20, groups: always(1), rounds: choice[int]{2, 8},
				others: "nats-kv-leader-elect stale in 5 of 7 runs, goNELI in 6 of 6"}),
			cut(strike{modes: plain, groups: always(5), rounds: choice[int]{2, 20},
				others: "nats-kv-leader-elect two while an update hangs, etcd for 435-943 ms in 13 of 16"}),
			crowd{modes: plain, elections: []int{1000}, window: choice[int]{5, 60},
				others: "1 goroutine, 5.9 KB (nats-kv-leader-elect), 2, 9.5 KB (client-go), 739 B (etcd)"},
			fleets{},
			scheduled{jobs: 1000, warm: choice[time.Duration]{20 * time.Second, 95 * time.Second},
				window: choice[time.Duration]{20 * time.Second, 2 * time.Minute}},
			operations{n: choice[int]{1000, 5000}},
		}
	},
}

var clusterSite = site{
	name: "r3", title: "NATS, three replicas", rig: "nats3",
	rows: func() []experiment {
		return []experiment{
			operations{n: choice[int]{500, 5000}},
			stops{of: []stopping{{rounds: choice[int]{30, 1000}}}, lease: always(15 * time.Second),
				late: figures.Bound{Median: 10 * time.Millisecond}, others: natsStop},
			crash{modes: plain, lease: always(5 * time.Second), groups: always(6),
				rounds: choice[int]{1, 10}, others: natsCrash,
				late: figures.Bound{Median: 50 * time.Millisecond}},
			natsSteady,
		}
	},
}

// partedSite is clusterSite with relays between the servers.
var partedSite = site{
	name: "r3", title: "NATS, three replicas", other: natsd.Clustered(natsd.StartPartible),
	rows: func() []experiment {
		return []experiment{faults{away: choice[time.Duration]{0, 22 * time.Second}}}
	},
}

var natsSteady = steady{lease: always(15 * time.Second), window: choice[int]{1, 4},
	modes: []mode{{requests: budget{messages: 12, "API requests": 0, "flow control": 0}}},
	note: "The servers count what the ten connections send (connz, in_msgs), but no pings. " +
		"Subscriptions of the bench to $KV.>, $JS.API.> and $JS.FC.> show what that is",
	others: "nats-kv-leader-elect 50.7, client-go 198, etcd 300 (TTL 5 s)"}

const (
	natsCrash = "nats-kv-leader-elect 57.4 s median (TTL 30 s), etcd 3.8 s (TTL 5 s)"
	natsStop  = "nats-kv-leader-elect 54 s, etcd 12 ms, client-go up to 4.4 s"
)

// natsServers is a cluster that can fail.
type natsServers struct {
	natsd.Running
	homes map[string]*natsd.Server // the server of createAt, by stream
}

// breakableOf returns the servers, or nil if they cannot fail one by one.
func breakableOf(r rig.Running) breakable {
	switch r := r.(type) {
	case natsd.Running:
		return natsServers{r, map[string]*natsd.Server{}}
	case kafkad.Running:
		if r.Cluster != nil {
			return &kafkaServers{Running: r}
		}
	}
	return nil
}

func (n natsServers) createAt(ctx context.Context, bucket string, home int) {
	check(n.Create(ctx, bucket))
	n.homes["KV_"+bucket] = n.All[home]
	n.restore(ctx)
}

func (n natsServers) whole(ctx context.Context) {
	for stream := range n.homes {
		check(n.Cluster.Whole(ctx, stream))
	}
}

func (n natsServers) restore(ctx context.Context) {
	for stream, home := range n.homes {
		check(n.Cluster.Lead(ctx, stream, home))
	}
}

func (n natsServers) faults() (all []serverFault) {
	on := func(do func(*natsd.Cluster, *natsd.Server) error) func(int) error {
		return func(i int) error { return do(n.Cluster, n.All[i]) }
	}
	for _, f := range natsd.Falls() {
		all = append(all, serverFault{strings.ReplaceAll(f.Name, "parted", "cut off"), on(f.Fall), on(f.Rise)})
	}
	return all
}

func (natsServers) controller(context.Context) int { return -1 }

// countMessages counts the messages of the members' connections, and apart from them the messages
// to the bucket and to the API.
func countMessages(c *team, n natsd.Running) func() []counts {
	nc := must(nats.Connect(n.URLs(), nats.Name("bench"), nats.MaxReconnects(-1)))
	c.cleanup(nc.Close)
	taps := map[string]*nats.Subscription{}
	for kind, subject := range map[string]string{
		"writes": "$KV.>", "API requests": "$JS.API.>", "flow control": "$JS.FC.>"} {
		tap := must(nc.SubscribeSync(subject))
		check(tap.SetPendingLimits(-1, -1))
		taps[kind] = tap
	}
	check(nc.Flush())
	return func() (all []counts) {
		seen, found := counts{}, 0
		for kind, tap := range taps {
			pending, _, err := tap.Pending()
			check(err)
			seen[kind] = pending
		}
		for _, s := range n.All {
			received := must(s.Received(c.ctx))
			for _, m := range c.members {
				if sent, ok := received[m.id]; ok {
					all = append(all, counts{messages: sent})
					found++
				}
			}
		}
		if found != len(c.members) {
			check(fmt.Errorf("%w: the servers show %d of %d connections", errBusy, found, len(c.members)))
		}
		return append(all, seen)
	}
}

// messages is the kind of the messages that the servers count.
const messages = "messages"
