package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

var natsSite = site{
	title: "NATS", start: startNATS, connect: dialNATS, rows: func() []experiment {
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
			operations{n: choice[int]{1000, 5000}},
		}
	},
}

var clusterSite = site{
	name: "r3", title: "NATS, three replicas", connect: dialNATS,
	start: startCluster(natsd.StartCluster),
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
	name: "r3", title: "NATS, three replicas", connect: dialNATS,
	start: startCluster(natsd.StartPartible),
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

// natsServers is one server, or a cluster of three.
type natsServers struct {
	cluster *natsd.Cluster // nil for one server
	all     []*natsd.Server
	nc      *nats.Conn
	js      jetstream.JetStream
	homes   map[string]*natsd.Server // the server of createAt, by stream
}

func startNATS(_ *bench, dir string) servers {
	n := &natsServers{all: []*natsd.Server{must(natsd.Start(dir))}}
	n.dial()
	return n
}

func startCluster(start func(dir string) (*natsd.Cluster, error)) func(*bench, string) servers {
	return func(b *bench, dir string) servers {
		c := must(start(dir))
		check(c.Ready(b.ctx))
		n := &natsServers{cluster: c, all: c.Servers[:], homes: map[string]*natsd.Server{}}
		n.dial()
		return n
	}
}

func (n *natsServers) dial() {
	n.nc = must(nats.Connect(natsURL(n.addresses()), nats.Name("bench"), nats.MaxReconnects(-1)))
	n.js = must(jetstream.New(n.nc))
}

func natsURL(addresses []string) string {
	return "nats://" + strings.Join(addresses, ",nats://")
}

func (n *natsServers) addresses() (all []string) {
	for _, s := range n.all {
		all = append(all, strings.TrimPrefix(s.URL(), "nats://"))
	}
	return all
}

func (n *natsServers) stop() {
	n.nc.Close()
	if n.cluster != nil {
		n.cluster.Kill()
		return
	}
	n.all[0].Kill()
}

func (n *natsServers) create(ctx context.Context, bucket string) {
	if n.cluster == nil {
		must(natskv.Open(ctx, n.js, bucket, natskv.Create()))
		return
	}
	check(patiently(func() error { // a cluster without a leader does not answer
		_, err := natskv.Open(ctx, n.js, bucket, natskv.Create(natskv.Replicas(natsd.Members)))
		return err
	}))
	check(n.cluster.Whole(ctx, "KV_"+bucket))
}

func (n *natsServers) createAt(ctx context.Context, bucket string, home int) {
	n.create(ctx, bucket)
	n.homes["KV_"+bucket] = n.all[home]
	n.restore(ctx)
}

func (n *natsServers) whole(ctx context.Context) {
	for stream := range n.homes {
		check(n.cluster.Whole(ctx, stream))
	}
}

func (n *natsServers) restore(ctx context.Context) {
	for stream, home := range n.homes {
		check(n.cluster.Lead(ctx, stream, home))
	}
}

func (n *natsServers) faults() []serverFault {
	on := func(do func(*natsd.Server) error) func(int) error {
		return func(i int) error { return do(n.all[i]) }
	}
	done := func(do func(*natsd.Server)) func(int) error {
		return on(func(s *natsd.Server) error { do(s); return nil })
	}
	return []serverFault{
		{"shut down", on((*natsd.Server).Stop), on((*natsd.Server).Start)},
		{"killed", done((*natsd.Server).Kill), on((*natsd.Server).Start)},
		{"frozen", on((*natsd.Server).Pause), on((*natsd.Server).Resume)},
		{"cut off", done(n.cluster.Part), done(n.cluster.Heal)},
	}
}

func (*natsServers) controller(context.Context) int { return -1 }

// counter counts the messages of the members' connections, and apart from them the messages to the
// bucket and to the API.
func (n *natsServers) counter(c *team) func() []counts {
	taps := map[string]*nats.Subscription{}
	for kind, subject := range map[string]string{
		"writes": "$KV.>", "API requests": "$JS.API.>", "flow control": "$JS.FC.>"} {
		tap := must(n.nc.SubscribeSync(subject))
		c.cleanup(func() { _ = tap.Unsubscribe() })
		check(tap.SetPendingLimits(-1, -1))
		taps[kind] = tap
	}
	check(n.nc.Flush())
	return func() (all []counts) {
		seen, found := counts{}, 0
		for kind, tap := range taps {
			pending, _, err := tap.Pending()
			check(err)
			seen[kind] = pending
		}
		for _, s := range n.all {
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

// natsClient is one connection. With a cluster, only the elections use it.
type natsClient struct {
	observer
	js   jetstream.JetStream
	opts []natskv.Option
}

func dialNATS(o observer) (client, error) {
	name, opts := o.me.ID, []natskv.Option{natskv.Pristine()}
	if len(o.me.Addresses) > 1 {
		name, opts = name+" (base)", append(opts, natskv.OwnConnection(nats.Name(name)))
	}
	nc, err := nats.Connect(natsURL(o.me.Addresses), nats.Name(name), nats.DontRandomize(),
		nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.SetCustomDialer(o.me))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	return &natsClient{o, js, opts}, err
}

func (n *natsClient) open(c command) (driver.Store, error) {
	store, err := natskv.Open(context.Background(), n.js, c.Bucket, n.opts...)
	if err != nil || c.Quiet {
		return store, err
	}
	return natsObserved{store, n.observer}, nil
}

type natsObserved struct {
	*natskv.Store
	observer observer
}

// CompareAndSwap calls the store and reports the write.
func (o natsObserved) CompareAndSwap(ctx context.Context, key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	return o.observer.swap(ctx, o.Store, key, prev, value)
}
