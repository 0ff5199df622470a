package main

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/peer"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

var (
	polled = mode{name: "without peers", polled: true,
		requests: budget{http.MethodPut: 12, http.MethodGet: 4 * (candidates - 1), total: 48}}
	peers = mode{name: "with peers", rest: 4 * settle,
		requests: budget{http.MethodPut: 12, total: 12}}
	both = []mode{peers, polled}
	// objectLease is the shortest lease that the store allows, and the default lease.
	objectLease  = choice[time.Duration]{2 * time.Second, 15 * time.Second}
	objectLeases = []time.Duration{2 * time.Second, 15 * time.Second}
)

var objectSite = site{
	name: "s3", title: "object storage", rig: "versity",
	rows: func() []experiment {
		return []experiment{
			steady{elections: 20, lease: objectLease, window: choice[int]{4, 8}, modes: both,
				prices: map[string]float64{http.MethodPut: 5e-6, http.MethodGet: 0.4e-6},
				note: "Requests are counted when each process sends them. A month has 30 days, and a million PUTs cost " +
					"$5 and GETs $0.40, as AWS lists them for S3 Standard. S3lect's figures are for its " +
					"interval of 5 s and without its peer mode",
				others: "S3lect GET 120, PUT 12, $4.67"},
			crash{modes: both, elections: 30, lease: objectLease,
				groups: choice[int]{1, 2}, rounds: always(1),
				late: figures.Bound{Median: 100 * time.Millisecond}, others: "S3lect 0.76-0.94 leases"},
			stops{lease: objectLease, others: "S3lect 3.9 s median",
				late: figures.Bound{Median: 25 * time.Millisecond},
				of: []stopping{
					{mode: peers, rounds: choice[int]{30, 200}},
					{mode: polled, members: 10, elections: choice[int]{40, 100}, rounds: always(1)},
					{mode: polled, elections: choice[int]{40, 100}, rounds: always(1)}}},
			cut(strike{modes: both, lease: 2 * time.Second, groups: always(5), rounds: choice[int]{1, 10},
				others: "S3lect: two leaders while the cut lasts"}),
			outage{modes: both, elections: 20, lease: 2 * time.Second, rounds: choice[int]{1, 3}},
			clocks{mode: polled, lease: objectLease, others: "S3lect: a joiner 20 s ahead steals at once"},
			failing{leases: choice[[]time.Duration]{objectLeases[:1], objectLeases}, mode: polled},
		}
	},
}

// fakeObjects is a server in the process of the bench. It keeps its only bucket in memory, and
// injects the faults of a plan.
type fakeObjects struct {
	rig.Server
	fake *s3fake.Server
	plan s3fake.Plan
}

// Create starts the server.
func (o *fakeObjects) Create(_ context.Context, bucket string) (err error) {
	o.fake, err = s3fake.Start(rand.Uint64(), o.plan, bucket)
	return err
}

// Addresses returns that of the server.
func (o *fakeObjects) Addresses() []string {
	return []string{strings.TrimPrefix(o.fake.URL(), "http://")}
}

// End ends the server.
func (o *fakeObjects) End() { o.fake.Close() }

// struck returns the number of faults so far.
func (o *fakeObjects) struck() (n int) {
	for fault := range o.plan.Chances {
		n += o.fake.Struck(fault)
	}
	return n
}

// failingObjects returns a server for each fault, and one with all of them.
func failingObjects() (all []*fakeObjects) {
	const chance = 0.3
	kinds := []s3fake.Fault{s3fake.LoseAnswer, s3fake.Contended, s3fake.TooMany, s3fake.Broken}
	mixed := map[s3fake.Fault]float64{}
	for _, kind := range kinds {
		mixed[kind] = chance / float64(len(kinds))
		plan := s3fake.Plan{Chances: map[s3fake.Fault]float64{kind: chance}}
		all = append(all, &fakeObjects{plan: plan})
	}
	return append(all, &fakeObjects{plan: s3fake.Plan{Chances: mixed}})
}

// withPeers returns a store whose leaders push to the followers, and serves peers of this process.
func (c *client) withPeers(store driver.Store) (driver.Store, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.address = l.Addr().String()
	p, err := peer.New(store, peer.Config{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		return nil, err
	}
	go func() {
		if err := p.Serve(l); err != nil {
			c.say(report{What: failed, Error: err.Error()})
		}
	}()
	return p, nil
}
