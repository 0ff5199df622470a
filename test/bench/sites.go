package main

import (
	"context"
	"fmt"
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
	"github.com/tenure-go/tenure/test/internal/sqld"
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

// sqlMode is the only mode of a polled database. The leader reads back each of its writes.
var sqlMode = mode{polled: true, requests: budget{"UPDATE": 12, "SELECT": 12 + 4*(candidates-1), total: 60}}

var sqlCalls = calls{write: "UPDATE", confirm: "SELECT", read: "SELECT"}

var postgresSite = site{
	name: "postgres", title: "PostgreSQL, Debian's settings: fsync and synchronous_commit are on",
	rig: "postgres", calls: sqlCalls,
	rows: sqlRows(`"`, "UPDATE %s SET value = $1, version = $2 WHERE name = $3 AND version = $4"),
}

var mariaSite = site{
	name: "mariadb", title: "MariaDB, default settings: innodb_flush_log_at_trx_commit is 1",
	rig: "mariadb", calls: sqlCalls,
	rows: sqlRows("`", "UPDATE %s SET value = ?, version = ? WHERE name = ? AND version = ?"),
}

func sqlRows(quote, update string) func() []experiment {
	modes, lease := []mode{sqlMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
	return func() []experiment {
		return []experiment{
			bare{quote: quote, update: update, n: choice[int]{300, 3000}},
			crash{modes: modes, elections: 30, lease: lease, groups: choice[int]{1, 2}, rounds: always(1)},
			stops{lease: lease, of: []stopping{{mode: sqlMode, elections: choice[int]{40, 100}, rounds: always(1)}}},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{4, 8},
				note: "Statements as each process sends them"},
			cut(strike{modes: modes, lease: 2 * time.Second, groups: always(5), rounds: choice[int]{1, 10}}),
			outage{modes: modes, elections: 20, lease: 2 * time.Second, rounds: choice[int]{1, 3}},
		}
	}
}

// pushMode has the requests of a healthy election: the leader's writes, each with a read of what
// was written, one read of each follower in ten leases, and the pings of each process, which all of
// its elections share.
var pushMode = mode{requests: budget{"write": 12, "read": 12 + 0.5*(candidates-1), "ping": 4 * candidates / 20}}

var pushedSite = site{
	name: "pgx", title: "PostgreSQL with pushes, Debian's settings: fsync and synchronous_commit are on",
	other: sqld.Pushed(),
	rows: func() []experiment {
		modes, lease := []mode{pushMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
		return []experiment{
			crash{modes: modes, lease: always(5 * time.Second), groups: always(6), rounds: choice[int]{1, 10},
				late: figures.Bound{Median: 25 * time.Millisecond}},
			crash{prefix: "busy-", modes: modes, lease: always(2 * time.Second), groups: always(8), rounds: choice[int]{1, 5},
				busy: 6, late: figures.Bound{Max: 200 * time.Millisecond}},
			stops{lease: lease, of: []stopping{{mode: pushMode, rounds: choice[int]{40, 300}}},
				late: figures.Bound{Median: 10 * time.Millisecond}},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{10, 20},
				note: "Statements as each process sends them, those of its listening connection too"},
			cut(strike{modes: modes, lease: 2 * time.Second, groups: always(5), rounds: choice[int]{1, 10}}),
			outage{modes: modes, elections: 20, lease: 2 * time.Second, rounds: choice[int]{1, 3}},
			crowd{modes: modes, elections: []int{1000}, window: choice[int]{5, 60}},
		}
	},
}

// fileMode has the requests of a healthy election: the leader's writes, and hardly any read, since
// the store itself looks at the file.
var fileMode = mode{requests: budget{"write": 12, "read": 1}}

var fileSite = site{
	name: "sqlite", title: "files of SQLite with pushes, WAL, synchronous=FULL",
	rig: "sqlite", calls: calls{write: "write", read: "read"},
	rows: func() []experiment {
		modes, lease := []mode{fileMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
		return []experiment{
			fresh{late: figures.Bound{Median: 50 * time.Millisecond}},
			crash{modes: modes, lease: always(5 * time.Second), groups: always(6), rounds: choice[int]{1, 10},
				late: figures.Bound{Median: 20 * time.Millisecond}},
			stops{lease: lease, of: []stopping{{mode: fileMode, rounds: choice[int]{40, 300}}},
				late: figures.Bound{Median: 25 * time.Millisecond}},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{10, 20},
				note: "Calls of the store by the elections of each process"},
			crowd{modes: modes, elections: []int{1000}, window: choice[int]{5, 60}},
		}
	},
}

// bare compares the store's operations with a bare UPDATE.
type bare struct {
	quote, update string
	n             choice[int]
}

func (bare) about() about {
	return about{"store", "single operations of the store, and a bare UPDATE of the same row that names its version",
		"From the call to its return, one after another on one pool, the operations in turn; 300 bytes"}
}

// most bounds the time of a compare-and-swap, as a multiple of its two statements: a bare UPDATE,
// and the read that confirms it.
const most = 1.3

func (x bare) measure(t *trial) {
	on, table := t.shared().(sqld.Running), t.unique("store")
	check(on.Create(t.ctx, table))
	db, s, err := on.Open(table)
	check(err)
	defer func() { _ = db.Close() }()
	quoted := x.quote + table + x.quote
	update := fmt.Sprintf(x.update, quoted)
	version, value := must(s.CompareAndSwap(t.ctx, "cell", "", make([]byte, 300))), make([]byte, 300)
	must(s.CompareAndSwap(t.ctx, "bare", "", value))
	must(db.ExecContext(t.ctx, "UPDATE "+quoted+" SET version = '0' WHERE name = 'bare'"))
	var reads, swaps, bares figures.Dist
	for i := range pick(t.bench, x.n) {
		began := time.Now()
		version = must(s.CompareAndSwap(t.ctx, "cell", version, value))
		swapped := time.Now()
		must(s.Read(t.ctx, "cell"))
		read := time.Now()
		result := must(db.ExecContext(t.ctx, update, value, fmt.Sprint(i+1), "bare", fmt.Sprint(i)))
		if must(result.RowsAffected()) != 1 {
			check(fmt.Errorf("update %d wrote no row", i))
		}
		swaps, reads, bares = append(swaps, swapped.Sub(began)), append(reads, read.Sub(swapped)), append(bares, time.Since(read))
	}
	limit := figures.Bound{Median: time.Duration(most * float64(bares.Median()+reads.Median()))}
	t.report(timed("Read", reads, figures.Bound{}, ""), timed("CompareAndSwap", swaps, limit, ""),
		timed("a bare UPDATE", bares, figures.Bound{}, ""))
}
