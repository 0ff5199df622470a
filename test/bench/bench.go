package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/test/internal/halt"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rigs"
)

// bench holds the servers that rows share. They start when a row first needs them.
type bench struct {
	options
	ctx context.Context
	log io.Writer
	dir string

	mu      sync.Mutex
	started map[*site]rig.Running
	names   int
}

func newBench(ctx context.Context, o options, log io.Writer) (*bench, error) {
	dir, err := os.MkdirTemp("", "tenure-bench-")
	return &bench{options: o, ctx: ctx, log: log, dir: dir, started: map[*site]rig.Running{}}, err
}

func (b *bench) close() {
	for _, s := range b.started {
		s.End()
	}
	_ = os.RemoveAll(b.dir)
}

// unique returns a unique name for a bucket, a member or an election.
func (b *bench) unique(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names++
	return fmt.Sprintf("%s-%d", name, b.names)
}

// sleep sleeps, and returns early if the bench ends.
func (b *bench) sleep(d time.Duration) { rig.Sleep(b.ctx, d) }

// repeat returns the number of rounds: -runs divided by times, or else the row's number.
func (b *bench) repeat(rounds choice[int], times int) int {
	if b.runs > 0 {
		return (b.runs + times - 1) / times
	}
	return pick(b, rounds)
}

// choice is a setting of a row, for a quick run and for a full run.
type choice[T any] struct{ quick, full T }

func always[T any](v T) choice[T] { return choice[T]{v, v} }

func pick[T any](b *bench, c choice[T]) T {
	if b.quick {
		return c.quick
	}
	return c.full
}

func (c choice[T]) String() string {
	full, quick := fmt.Sprint(c.full), fmt.Sprint(c.quick)
	if full == quick {
		return full
	}
	return full + " (" + quick + " in a quick run)"
}

// trial is one run of an experiment. As in a test, the first error ends it, and its end stops
// everything that it started.
type trial struct {
	*bench
	site  *site
	found []measure
	ends  []func()
}

// check ends the trial if there is an error.
func check(err error) { halt.On(err) }

// must returns the value, or ends the trial if there is an error.
func must[T any](v T, err error) T { return halt.Unless(v, err) }

// errBusy means that the machine was too busy to measure: a leader was delayed for longer than its
// lease, or lost its connection. No promise is broken.
var errBusy = errors.New("the machine is too busy to measure it")

// try runs a trial and returns its measures, also those from before an error.
func (b *bench) try(s *site, do func(*trial)) ([]measure, error) {
	t := &trial{bench: b, site: s}
	err := t.do(do)
	return t.found, err
}

func (t *trial) do(do func(*trial)) (err error) {
	defer halt.Catch(&err)
	defer func() {
		for _, end := range slices.Backward(t.ends) {
			end()
		}
	}()
	do(t)
	return nil
}

// cleanup calls a function when the trial ends.
func (t *trial) cleanup(end func()) { t.ends = append(t.ends, end) }

func (t *trial) report(found ...measure) { t.found = append(t.found, found...) }

// shared returns the servers that all trials at the site share.
func (t *trial) shared() rig.Running {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started[t.site] == nil {
		dir := filepath.Join(t.dir, fmt.Sprint("servers-", len(t.started)))
		check(os.Mkdir(dir, 0o700))
		if t.site.start != nil {
			t.started[t.site] = t.site.start(t.bench, dir)
		} else {
			t.started[t.site] = must(t.site.kind().Start(t.ctx, dir))
		}
	}
	return t.started[t.site]
}

// open opens a bucket in this process, as candidates do in their processes.
func (t *trial) open(on rig.Running, bucket string) driver.Store {
	me := identity{Connector: rig.Connector{ID: "bench", Addresses: on.Addresses()}}
	s := must(newClient(t.site, me, nil).open(command{Bucket: bucket, Quiet: true}))
	if c, ok := s.(io.Closer); ok {
		t.cleanup(func() { _ = c.Close() })
	}
	return s
}

// sideBySide runs n trials at the same time, and reports their measures in order.
func sideBySide[T any](t *trial, n int, do func(t *trial, i int) T) []T {
	results, found, errs := make([]T, n), make([][]measure, n), make([]error, n)
	var trials sync.WaitGroup
	for i := range n {
		trials.Go(func() {
			found[i], errs[i] = t.try(t.site, func(t *trial) { results[i] = do(t, i) })
		})
	}
	trials.Wait()
	t.report(slices.Concat(found...)...)
	for _, err := range errs {
		check(err)
	}
	return results
}

// inTurn runs n trials one after another. A quick run needs less precision and runs them at the
// same time.
func inTurn(t *trial, n int, do func(t *trial, i int)) {
	atOnce := pick(t.bench, choice[int]{n, 1})
	for i := 0; i < n; i += atOnce {
		sideBySide(t, atOnce, func(t *trial, k int) error { do(t, i+k); return nil })
	}
}

// site is a kind of store on servers of its own. Its file lists the experiments that measure it.
type site struct {
	name  string // the prefix of its rows
	title string
	rig   string   // the name of the rig that has the servers
	other rig.Kind // instead of the rig's, if it is not zero
	// start starts the servers instead of the kind, if it is not nil.
	start func(b *bench, dir string) rig.Running
	calls calls
	rows  func() []experiment
}

func (s *site) kind() rig.Kind {
	if s.other.Connect != nil {
		return s.other
	}
	return rigs.Kind(s.rig)
}

// sites lists all of them. The rigs without a site of their own have the usual rows.
var sites = sync.OnceValue(func() []*site {
	all := []*site{&natsSite, &clusterSite, &partedSite, &objectSite, &kafkaSite, &kfakeSite, &etcdSite, &etcdClusterSite, &postgresSite, &pushedSite, &mariaSite, &fileSite, &redisSite, &kubernetesSite}
	for _, r := range rigs.All() {
		if r.Kind.Connect != nil && !slices.ContainsFunc(all, func(s *site) bool { return s.rig == r.Name }) {
			all = append(all, &site{name: r.Name, title: r.Kind.Title, rig: r.Name, rows: usual(mode{polled: r.Kind.Polled}, r.Kind.Shortest)})
		}
	}
	return all
})

// usual returns the experiments that need to know nothing of a store.
func usual(m mode, shortest time.Duration) func() []experiment {
	shortest = max(shortest, 2*time.Second)
	modes, lease := []mode{m}, choice[time.Duration]{shortest, 15 * time.Second}
	stopped := choice[int]{40, 300}
	if m.polled { // each takes seconds
		stopped = choice[int]{5, 50}
	}
	return func() []experiment {
		return []experiment{
			operations{n: choice[int]{200, 2000}},
			crash{modes: modes, lease: lease, groups: choice[int]{1, 3}, rounds: choice[int]{1, 10}},
			stops{lease: lease, of: []stopping{{mode: m, rounds: stopped}}},
			cut(strike{modes: modes, lease: shortest, groups: always(5), rounds: choice[int]{1, 10}}),
		}
	}
}

// calls names the requests that are counted where the store is called: a write, the read that
// confirms it, and another read. Others are counted where they are sent.
type calls struct{ write, confirm, read string }

// counts holds numbers of requests by kind.
type counts map[string]int

// breakable is implemented by servers that can fail one by one. They are numbered from 0.
type breakable interface {
	rig.Running
	// createAt creates a bucket that one of the servers leads.
	createAt(ctx context.Context, bucket string, home int)
	// faults lists the possible faults of a server. The first one is an orderly restart.
	faults() []serverFault
	// whole waits until all servers are up and all copies are complete.
	whole(ctx context.Context)
	// restore makes the server of createAt lead each bucket again.
	restore(ctx context.Context)
	// controller returns the server that controls the others, or -1 if there is none.
	controller(ctx context.Context) int
}

// serverFault is a fault of one server. End ends it.
type serverFault struct {
	name       string
	begin, end func(server int) error
}

// mode is a way to use a store, for stores that have several.
type mode struct {
	name string
	// session is the session timeout of the consumer group that nominates.
	session choice[time.Duration]
	// polled is set if followers learn of changes by reading.
	polled bool
	// rest is how long a member needs after its first read to learn of changes at once.
	rest time.Duration
	// requests bounds the requests of ten candidates while nothing happens.
	requests budget
}

// label returns the beginning of the names of the mode's measures.
func (m mode) label() string { return strings.TrimPrefix(m.name+": ", ": ") }

// plain holds the only mode of most stores.
var plain = []mode{{}}
