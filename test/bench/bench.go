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

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// bench holds the servers that rows share. They start when a row first needs them.
type bench struct {
	options
	ctx context.Context
	log io.Writer
	dir string

	mu      sync.Mutex
	started map[*site]servers
	names   int
}

func newBench(ctx context.Context, o options, log io.Writer) (*bench, error) {
	dir, err := os.MkdirTemp("", "tenure-bench-")
	return &bench{options: o, ctx: ctx, log: log, dir: dir, started: map[*site]servers{}}, err
}

func (b *bench) close() {
	for _, s := range b.started {
		s.stop()
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
func (b *bench) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.ctx.Done():
	}
}

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

// failure is the panic with which check ends a trial.
type failure struct{ error }

// check ends the trial if there is an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns the value, or ends the trial if there is an error.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// errBusy means that the machine was too busy to measure: a leader was delayed for longer than its
// lease, or lost its connection. No promise is broken.
var errBusy = errors.New("the machine is too busy to measure it")

// catch stores the error that ended a trial. Defer it.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.error
	default:
		panic(r)
	}
}

// try runs a trial and returns its measures, also those from before an error.
func (b *bench) try(s *site, do func(*trial)) ([]measure, error) {
	t := &trial{bench: b, site: s}
	err := t.do(do)
	return t.found, err
}

func (t *trial) do(do func(*trial)) (err error) {
	defer catch(&err)
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
func (t *trial) shared() servers {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started[t.site] == nil {
		dir := filepath.Join(t.dir, fmt.Sprint("servers-", len(t.started)))
		check(os.Mkdir(dir, 0o700))
		t.started[t.site] = t.site.start(t.bench, dir)
	}
	return t.started[t.site]
}

// open opens a bucket in this process, as candidates do in their processes.
func (t *trial) open(on servers, bucket string) driver.Store {
	me := identity{ID: "bench", Addresses: on.addresses()}
	c := must(t.site.connect(newObserver(me, func(report) {})))
	s := must(c.open(command{Bucket: bucket, Quiet: true}))
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

// site is a kind of store on servers of its own. Its file says how to start and reach them, and
// which experiments measure it.
type site struct {
	name  string // the prefix of its rows
	title string
	start func(b *bench, dir string) servers
	// connect runs in the process of a candidate.
	connect func(o observer) (client, error)
	rows    func() []experiment
}

// sites lists all of them. A new store is a file and an entry here.
func sites() []*site {
	return []*site{&natsSite, &clusterSite, &partedSite, &objectSite, &kafkaSite, &kfakeSite, &postgresSite, &pushedSite, &mariaSite, &fileSite}
}

// servers are those of a site, as the bench sees them. Errors end the trial.
type servers interface {
	// addresses returns HOST:PORT of each server.
	addresses() []string
	// create creates a bucket, or the topic or table in which the store keeps elections.
	create(ctx context.Context, bucket string)
	stop()
}

// client connects a candidate's process to the servers.
type client interface {
	// open opens a bucket. Unless the command is quiet, the store reports its writes.
	open(c command) (driver.Store, error)
	// configure changes the configuration of an election. The context ends with the campaign.
	configure(ctx context.Context, c command, election string, cfg *tenure.Config) error
	// requests returns the number of requests so far, by kind. It is empty if the servers count
	// them.
	requests() counts
}

// counting is implemented by servers that count the requests of candidates.
type counting interface {
	// counter starts to count. It returns a function that returns the counts: one for each member,
	// and perhaps others.
	counter(c *team) func() []counts
}

// counts holds numbers of requests by kind.
type counts map[string]int

// breakable is implemented by servers that can fail one by one. They are numbered from 0.
type breakable interface {
	servers
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
