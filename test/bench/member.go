package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/fleet"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/halt"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// The bench and its members exchange lines of JSON. A member receives an identity first. Then it
// receives commands and sends reports.

// identity is given to a member when it is started.
type identity struct {
	rig.Connector
	Site int // index in sites
	Mode string
	// Judge is set if each read is reported with the age of the record by the times of day.
	Judge bool `json:",omitempty"`
}

type command struct {
	Do        do
	Bucket    string        `json:",omitempty"`
	Elections []string      `json:",omitempty"`
	Lease     time.Duration `json:",omitempty"`
	Ask       asking.Way    `json:",omitempty"`
	// Quiet saves the reports of writes.
	Quiet bool `json:",omitempty"`
	// Spread is the time over which the elections are started, in random order. Without it, all of
	// them would be renewed and polled at the same moments.
	Spread  time.Duration `json:",omitempty"`
	Session time.Duration `json:",omitempty"` // of the mode
}

type do string

const (
	start     do = "start"      // campaign
	joinFleet do = "join fleet" // join a fleet
	stop      do = "stop"       // end the campaigns, release, report stopped
	weigh     do = "weigh"      // report used, when the process is at rest
	tally     do = "tally"      // report used with the requests only
	consume   do = "consume"    // instead of campaigning, act while owning a partition
)

// report is something that happened in a member. Times are from machine.Now.
type report struct {
	What     what
	At       int64         `json:",omitempty"`
	Election string        `json:",omitempty"`
	Token    uint64        `json:",omitempty"`
	Until    int64         `json:",omitempty"` // for wrote: when the call returned
	Prev     string        `json:",omitempty"` // versions of the cell, for writes
	Version  string        `json:",omitempty"`
	Released bool          `json:",omitempty"`
	Expired  bool          `json:",omitempty"` // for lost and left: at the deadline
	Age      time.Duration `json:",omitempty"` // for judged: by the times of day
	Killed   bool          `json:",omitempty"` // for left: by the bench
	Acts     []int64       `json:",omitempty"`
	Usage    *usage        `json:",omitempty"`
	Error    string        `json:",omitempty"`
}

type what string

const (
	connected what = "connected" // the member is ready for commands
	opening   what = "opening"   // the first request to the store comes next
	following what = "following" // the record was read
	sending   what = "sending"   // a write comes next
	wrote     what = "wrote"     // a write was applied; At is when it was sent
	leads     what = "leads"     // lead was entered
	left      what = "left"      // the work of a fleet's term has finished
	acted     what = "acted"     // the work may act
	stopped   what = "stopped"   // after stop
	lost      what = "lost"      // a term ended before it was resigned
	judged    what = "judged"    // a record of another leader was read; Age is how old it looks
	used      what = "used"      // after weigh or tally
	failed    what = "failed"
)

// usage is the usage of a member.
type usage struct {
	machine.Usage
	Requests counts // so far; empty if the servers count them
}

// workerVariable is the environment variable that makes a process a worker.
const workerVariable = "TENURE_BENCH_WORKER"

// worker is the process of a member.
type worker struct {
	*client
	stores map[string]driver.Store // by bucket
	asker  *asking.Asker
	ctx    context.Context // of the campaigns; nil if there are none
	cancel context.CancelFunc
	runs   []<-chan error
	meter  machine.Meter
}

// workerMain runs a worker if this process was started as one. A worker ends with its parent.
func workerMain() {
	if os.Getenv(workerVariable) == "" {
		return
	}
	out := crew.NewReporter(os.Stdout)
	w := &worker{stores: map[string]driver.Store{}}
	say := func(r report) { out.Send(r) }
	if err := w.work(os.Stdin, say); err != nil {
		say(report{What: failed, Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// work obeys commands until there are no more, or until check fails.
func (w *worker) work(in io.Reader, say func(report)) (err error) {
	defer halt.Catch(&err)
	var me identity
	rest := must(crew.Settings(in, &me))
	w.client = newClient(sites()[me.Site], me, say)
	w.asker = asking.Start(func(election string, token uint64, stamps []int64) {
		w.say(report{What: acted, Election: election, Token: token, Acts: stamps})
	})
	w.say(report{What: connected, At: machine.Now()})
	for commands := json.NewDecoder(rest); ; {
		var c command
		if err := commands.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		w.obey(c)
	}
}

func (w *worker) obey(c command) {
	switch c.Do {
	case start, joinFleet:
		w.start(c)
	case stop:
		w.stop()
	case consume:
		check(w.client.consume(c))
	case weigh:
		w.say(report{What: used, Usage: &usage{Usage: w.meter.Use()}})
	case tally:
		w.say(report{What: used, Usage: &usage{Requests: w.requests()}})
	}
}

// start starts campaigns in more elections.
func (w *worker) start(c command) {
	w.say(report{What: opening, At: machine.Now()})
	if w.stores[c.Bucket] == nil {
		check(patiently(func() (err error) {
			w.stores[c.Bucket], err = w.open(c)
			return err
		}))
	}
	if w.ctx == nil {
		w.ctx, w.cancel = context.WithCancel(context.Background())
	}
	if c.Do == joinFleet {
		w.joinFleet(w.stores[c.Bucket], c)
	} else {
		w.campaigns(w.stores[c.Bucket], c)
	}
	w.meter.Take() // the start itself does not count
}

// patiently calls try again if a busy server has not answered or has closed the connection.
func patiently(try func() error) (err error) {
	for end := time.Now().Add(attempt); time.Now().Before(end); time.Sleep(settle) {
		if err = try(); err == nil {
			break
		}
	}
	return err
}

// attempt is the time limit for an answer of a server.
const attempt = time.Minute

func (w *worker) campaigns(store driver.Store, c command) {
	if c.Spread > 0 {
		rand.Shuffle(len(c.Elections), func(i, j int) {
			c.Elections[i], c.Elections[j] = c.Elections[j], c.Elections[i]
		})
	}
	for i, name := range c.Elections {
		if i > 0 {
			time.Sleep(c.Spread / time.Duration(len(c.Elections)))
		}
		w.campaign(store, name, c)
	}
}

func (w *worker) campaign(store driver.Store, name string, c command) {
	cfg := tenure.Config{ID: w.me.ID, Lease: c.Lease}
	if !c.Quiet {
		cfg.OnEvent = w.hear
	}
	if w.me.Wall != 0 {
		cfg.Clock = wrongClock{clock.System{}, w.me.Wall}
	}
	cfg.Address = w.address
	if c.Session > 0 {
		check(patiently(func() error { return w.nominate(w.ctx, c.Session, name, &cfg) }))
	}
	g := must(tenure.NewGroup(store, cfg)) // a follower of a Group needs no goroutine
	e := must(g.Election(name))
	ended := must(g.Join(w.ctx, e, tenure.Lead(func(ctx context.Context, t *tenure.Term) error {
		at := w.asker.Enter(name, t, c.Ask)
		w.say(report{What: leads, Election: name, Token: t.Token(), At: at})
		<-ctx.Done()
		return nil
	})))
	w.runs = append(w.runs, ended)
	go w.follow(w.ctx, e)
}

// follow waits until the candidate has read the record, and reports that.
func (w *worker) follow(ctx context.Context, e *tenure.Election) {
	if _, err := e.Wait(ctx, func(s tenure.Status) bool { return s.Known }); err == nil {
		w.say(report{What: following, Election: e.Name(), At: machine.Now()})
	}
}

func (w *worker) hear(e tenure.Event) {
	if e.Kind == tenure.EventLost {
		w.say(report{What: lost, Election: e.Election, Token: e.Term, At: machine.Now(),
			Error: e.Cause.Error(), Expired: errors.Is(e.Cause, tenure.ErrExpired)})
	}
	w.asker.Hear(e)
}

// joinFleet joins a fleet.
func (w *worker) joinFleet(store driver.Store, c command) {
	f := must(fleet.New(store, "fleet", fleet.Config{
		Election: tenure.Config{ID: w.me.ID, Lease: c.Lease}, Elections: c.Elections,
	}))
	run, ctx := make(chan error, 1), w.ctx
	go func() { run <- f.Run(ctx, shards{w}) }()
	w.runs = append(w.runs, run)
}

// shards is the handler of a fleet's terms. It needs no goroutine.
type shards struct{ *worker }

func (s shards) Elected(_ context.Context, t *tenure.Term) (stop func(context.Context) error, err error) {
	s.say(report{What: leads, Election: t.Election(), Token: t.Token(), At: machine.Now()})
	return func(ctx context.Context) error {
		s.say(report{What: left, Election: t.Election(), Token: t.Token(), At: machine.Now(),
			Expired: errors.Is(context.Cause(ctx), tenure.ErrExpired)})
		return nil
	}, nil
}

func (w *worker) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	for _, run := range w.runs {
		if err := <-run; err != nil {
			w.say(report{What: failed, Error: err.Error()})
		}
	}
	w.runs, w.ctx = nil, nil
	w.say(report{What: stopped, At: machine.Now()})
}

// wrongClock is a clock with a wrong time of day.
type wrongClock struct {
	clock.Clock
	by time.Duration
}

// Now returns the reading of the inner clock with a wrong time of day.
func (c wrongClock) Now() clock.Reading {
	r := c.Clock.Now()
	r.Wall = r.Wall.Add(c.by)
	return r
}

// client is the connection of a process to the servers. It reports the operations of the stores
// that it opens, and counts requests.
type client struct {
	site    *site
	me      identity
	say     func(report)
	opener  rig.Opener
	address string // for peers of this process

	mu  sync.Mutex
	all counts
}

// newClient connects.
func newClient(s *site, me identity, say func(report)) *client {
	c := &client{site: s, me: me, say: say, all: counts{}}
	c.me.Count = c.count
	c.opener = must(s.kind().Connect(c.me.Connector))
	return c
}

// open opens a bucket. Unless the command is quiet, the store reports its writes.
func (c *client) open(how command) (driver.Store, error) {
	store, err := c.opener(context.Background(), how.Bucket)
	if err != nil || how.Quiet {
		return store, err
	}
	store = observed{store, c}
	if c.me.Mode == peers.name {
		return c.withPeers(store)
	}
	return store, nil
}

// count counts a request. Requests without a name do not count.
func (c *client) count(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind != "" {
		c.all[kind]++
	}
}

// requests returns the number of requests so far, by kind. It is empty if the servers count them.
func (c *client) requests() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.all)
}

// observed is a store whose operations are reported.
type observed struct {
	driver.Store
	by *client
}

// Abilities returns those of the store. Only reads and writes pass through this one.
func (o observed) Abilities() driver.Abilities { return driver.AbilitiesOf(o.Store) }

// CompareAndSwap reports a write before it is sent, so that the last write of a killed process is
// known, and again when it was applied.
func (o observed) CompareAndSwap(ctx context.Context, key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	c, _ := record.Decode(value) // empty if the value is not a record
	r := report{What: sending, Election: key, Prev: string(prev), Token: c.Term, Released: c.Released,
		At: machine.Now()}
	o.by.say(r)
	o.by.count(o.by.site.calls.write)
	version, err := o.Store.CompareAndSwap(ctx, key, prev, value)
	if err == nil {
		o.by.count(o.by.site.calls.confirm)
		r.What, r.Version, r.Until = wrote, string(version), machine.Now()
		o.by.say(r)
	}
	return version, err
}

// Read reports how old another leader's record looks by the times of day. This is a planted
// mistake: a candidate that relied on them would take over too early.
func (o observed) Read(ctx context.Context, key string) (driver.Entry, error) {
	o.by.count(o.by.site.calls.read)
	e, err := o.Store.Read(ctx, key)
	if err != nil || !o.by.me.Judge {
		return e, err
	}
	if c, err := record.Decode(e.Value); err == nil && c.Held() && c.LeaderID != o.by.me.ID {
		age := time.Now().Add(o.by.me.Wall).Sub(c.LastUpdated)
		o.by.say(report{What: judged, Election: key, At: machine.Now(), Age: age})
	}
	return e, nil
}
