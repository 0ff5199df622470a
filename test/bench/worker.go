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
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// workerVariable is the environment variable that makes a process a worker.
const workerVariable = "TENURE_BENCH_WORKER"

// worker is the process of a member.
type worker struct {
	me     identity
	say    func(report)
	client client
	stores map[string]driver.Store // by bucket
	asker  *asking.Asker
	ctx    context.Context // of the campaigns; nil if there are none
	cancel context.CancelFunc
	runs   []<-chan error
	meter  machine.Meter
}

// workerMain runs a worker if this process was started as one. A worker ends with its parent.
func workerMain() {
	encoded := os.Getenv(workerVariable)
	if encoded == "" {
		return
	}
	w := &worker{say: reporter(os.Stdout), stores: map[string]driver.Store{}}
	if err := w.work(encoded, os.Stdin); err != nil {
		w.say(report{What: failed, Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// reporter writes each report in one call, so that a killed process leaves no incomplete report.
func reporter(out io.Writer) func(report) {
	var mu sync.Mutex
	lines := json.NewEncoder(out)
	return func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(r) // fails only if the parent is gone
	}
}

// work obeys commands until there are no more, or until check fails.
func (w *worker) work(encoded string, in io.Reader) (err error) {
	defer catch(&err)
	check(json.Unmarshal([]byte(encoded), &w.me))
	w.asker = asking.Start(func(election string, token uint64, stamps []int64) {
		w.say(report{What: acted, Election: election, Token: token, Acts: stamps})
	})
	w.client = must(sites()[w.me.Site].connect(newObserver(w.me, w.say)))
	w.say(report{What: connected, At: machine.Now()})
	for commands := json.NewDecoder(in); ; {
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
		check(w.client.(*logClient).consume(c))
	case weigh:
		w.say(report{What: used, Usage: &usage{Usage: w.meter.Use()}})
	case tally:
		w.say(report{What: used, Usage: &usage{Requests: w.client.requests()}})
	}
}

// start starts campaigns in more elections.
func (w *worker) start(c command) {
	w.say(report{What: opening, At: machine.Now()})
	if w.stores[c.Bucket] == nil {
		check(patiently(func() (err error) {
			w.stores[c.Bucket], err = w.client.open(c)
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
	check(patiently(func() error { return w.client.configure(w.ctx, c, name, &cfg) }))
	nominator := cfg.Nominator
	cfg.Nominator = nil
	g := must(tenure.NewGroup(store, cfg)) // a follower of a Group needs no goroutine
	e := must(g.Election(name, nominator))
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
		Election: tenure.Config{ID: w.me.ID, Lease: c.Lease}, Elections: c.Elections, Spread: true,
	}))
	run, ctx := make(chan error, 1), w.ctx
	go func() { run <- f.Run(ctx, shards{w}) }()
	w.runs = append(w.runs, run)
}

// shards is the handler of a fleet's terms. It needs no goroutine.
type shards struct{ *worker }

func (s shards) Elected(_ context.Context, t *tenure.Term) error {
	s.say(report{What: leads, Election: t.Election(), Token: t.Token(), At: machine.Now()})
	return nil
}

func (s shards) Stop(ctx context.Context, t *tenure.Term) error {
	s.say(report{What: left, Election: t.Election(), Token: t.Token(), At: machine.Now(),
		Expired: errors.Is(context.Cause(ctx), tenure.ErrExpired)})
	return nil
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

// observer reports the operations of a store, and counts requests. Each client embeds its own store
// in addition, because elections find a store's optional interfaces by its type.
type observer struct {
	me  identity
	say func(report)
	mu  *sync.Mutex
	all counts
}

func newObserver(me identity, say func(report)) observer {
	return observer{me, say, &sync.Mutex{}, counts{}}
}

func (o observer) count(kind string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[kind]++
}

func (o observer) requests() counts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.all)
}

// swap reports a write before it is sent, so that the last write of a killed process is known, and
// again when it was applied.
func (o observer) swap(ctx context.Context, s driver.Store, key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	c, _ := record.Decode(value) // empty if the value is not a record
	r := report{What: sending, Election: key, Prev: string(prev), Token: c.Term, Released: c.Released,
		At: machine.Now()}
	o.say(r)
	version, err := s.CompareAndSwap(ctx, key, prev, value)
	if err == nil {
		r.What, r.Version, r.Until = wrote, string(version), machine.Now()
		o.say(r)
	}
	return version, err
}

// read reports how old another leader's record looks by the times of day. This is a planted
// mistake: a candidate that relied on them would take over too early.
func (o observer) read(ctx context.Context, s driver.Store, key string) (driver.Entry, error) {
	e, err := s.Read(ctx, key)
	if err != nil || !o.me.Judge {
		return e, err
	}
	if c, err := record.Decode(e.Value); err == nil && c.Held() && c.LeaderID != o.me.ID {
		age := time.Now().Add(o.me.Wall).Sub(c.LastUpdated)
		o.say(report{What: judged, Election: key, At: machine.Now(), Age: age})
	}
	return e, nil
}
