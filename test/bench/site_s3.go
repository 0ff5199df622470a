package main

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/peer"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
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
	name: "s3", title: "object storage", start: startObjects, connect: connectObjects,
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
			failing{leases: choice[[]time.Duration]{objectLeases[:1], objectLeases},
				mode: polled, servers: failingObjects},
		}
	},
}

type objectServers struct{ *s3d.Server }

func startObjects(b *bench, dir string) servers {
	return objectServers{must(s3d.Open(b.ctx, s3d.Versity, dir, 0))}
}

func (o objectServers) addresses() []string {
	return []string{strings.TrimPrefix(o.URLs()[0], "http://")}
}

func (o objectServers) create(ctx context.Context, bucket string) {
	check(o.CreateBucket(ctx, bucket))
}

func (o objectServers) stop() { o.Stop() }

// fakeObjects is a server in the process of the bench. It keeps its only bucket in memory, and
// injects the faults of a plan.
type fakeObjects struct {
	server *s3fake.Server
	plan   s3fake.Plan
}

func (o *fakeObjects) create(_ context.Context, bucket string) {
	o.server = must(s3fake.Start(rand.Uint64(), o.plan, bucket))
}

func (o *fakeObjects) addresses() []string {
	return []string{strings.TrimPrefix(o.server.URL(), "http://")}
}

func (o *fakeObjects) stop() { o.server.Close() }

func (o *fakeObjects) struck() (n int) {
	for fault := range o.plan.Chances {
		n += o.server.Struck(fault)
	}
	return n
}

// failingObjects returns a server for each fault, and one with all of them.
func failingObjects() (all []failingServers) {
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

// objectClient is one client, and in the mode with peers also a server for them.
type objectClient struct {
	observer
	client  *s3.Client
	address string // for peers of this process
}

func connectObjects(o observer) (client, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute,
		DialContext: o.me.DialContext}
	counting := roundTripper(func(r *http.Request) (*http.Response, error) {
		o.count(r.Method)
		return transport.RoundTrip(r)
	})
	skew := o.me.Wall
	// S3 refuses such a time, and then the client library uses the server's time.
	if skew.Abs() >= 15*time.Minute {
		skew = 0
	}
	return &objectClient{observer: o, client: s3d.Client("http://"+o.me.Addresses[0], s3d.Skewed(skew),
		func(s *s3.Options) { s.HTTPClient = &http.Client{Transport: counting} })}, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (o *objectClient) open(c command) (driver.Store, error) {
	objects, err := s3object.New(o.client, c.Bucket)
	if err != nil || o.me.Mode != peers.name {
		return objectObserved{objects, o.observer}, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o.address = l.Addr().String()
	p, err := peer.New(objectObserved{objects, o.observer},
		peer.Config{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		return nil, err
	}
	go func() {
		if err := p.Serve(l); err != nil {
			o.say(report{What: failed, Error: err.Error()})
		}
	}()
	return p, nil
}

func (o *objectClient) configure(_ context.Context, _ command, _ string, cfg *tenure.Config) error {
	cfg.Address = o.address
	return nil
}

type objectObserved struct {
	*s3object.Store
	observer observer
}

// CompareAndSwap calls the store and reports the write.
func (o objectObserved) CompareAndSwap(ctx context.Context, key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	return o.observer.swap(ctx, o.Store, key, prev, value)
}

// Read calls the store, and reports how old the record looks if the command asks for that.
func (o objectObserved) Read(ctx context.Context, key string) (driver.Entry, error) {
	return o.observer.read(ctx, o.Store, key)
}
