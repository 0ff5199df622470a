// Package migration replaces the processes of a predecessor by candidates of Tenure, one by one,
// while other things happen to both. A referee watches all of them. The tests of a predecessor add
// a model of its processes, what may happen to them, and which of them may lead at once.
package migration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Process is a process of either kind.
type Process interface {
	Name() string
	// Leads reports whether the process does a leader's work now.
	Leads() bool
	End(crash bool)
}

// Fleet is up to three processes of each kind, with a referee that looks at them all the time.
type Fleet struct {
	rng   *rand.Rand
	judge func(p, q Process) string
	stop  chan struct{}
	over  sync.Once
	done  chan struct{}

	mu     sync.Mutex
	places [6]Process // first the old processes, then the new ones
	report Report
	last   Process
	token  uint64
	gap    time.Duration
}

// Report is the referee's result.
type Report struct {
	Faults             []string
	Steps              int
	All, Led, Longest  time.Duration // Longest: without a leader
	OldToNew, NewToOld int
	TokensNotAbove     int
}

// New returns a fleet without processes, whose referee looks at these intervals. Judge gets two
// processes that lead at once, in the order of their places, and returns the fault in that, if any.
func New(seed uint64, look time.Duration, judge func(p, q Process) (fault string)) *Fleet {
	f := &Fleet{rng: rand.New(rand.NewPCG(seed, 1)), judge: judge, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for {
			select {
			case <-f.stop:
				return
			case <-time.After(look):
				f.look(look)
			}
		}
	}()
	return f
}

// Close ends all processes. It may be called twice.
func (f *Fleet) Close() Report {
	for i := range f.places {
		f.End(i, false)
	}
	f.over.Do(func() { close(f.stop) })
	<-f.done
	return f.report
}

// Between returns a random duration.
func (f *Fleet) Between(least, most time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return least + time.Duration(f.rng.Int64N(int64(most-least)+1))
}

// Draw returns a random number from 0 to n-1.
func (f *Fleet) Draw(n int) int { return int(f.Between(0, time.Duration(n-1))) }

// Put gives a process its place: an old one from 0 to 2, a new one from 3 to 5.
func (f *Fleet) Put(i int, p Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places[i] = p
}

// At returns the process of a place, or nil.
func (f *Fleet) At(i int) Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.places[i]
}

// End ends the process of a place, if there is one.
func (f *Fleet) End(i int, crash bool) {
	if p := f.At(i); p != nil {
		p.End(crash)
		f.Put(i, nil)
	}
}

// Leader returns a leader and its place, or nil.
func (f *Fleet) Leader() (int, Process) {
	for i := range f.places {
		if p := f.At(i); p != nil && p.Leads() {
			return i, p
		}
	}
	return 0, nil
}

// Migrate replaces the old processes one by one, with pauses of at most this length. Happen lets
// one thing happen to the process of a place, mostly the leader's. In the end, when all are new,
// one must lead within a time.
func (f *Fleet) Migrate(pause, within time.Duration, startOld, startNew, happen func(i int)) {
	several := func(n int) {
		for range n {
			f.report.Steps++
			time.Sleep(f.Between(0, 45*time.Second))
			if i := f.pick(); i >= 0 {
				happen(i)
			}
		}
	}
	for i := range 3 {
		startOld(i)
	}
	for i := range 3 {
		several(4)
		startNew(i)
		several(2)
		time.Sleep(f.Between(0, pause))
		f.End(i, f.Draw(3) == 0)
		time.Sleep(f.Between(0, pause))
		if i < 2 && f.Draw(3) == 0 { // roll back, once
			f.End(3+i, false)
			startOld(i)
			several(3)
			startNew(i)
			f.End(i, false)
		}
	}
	several(3)
	leads := func() bool { _, p := f.Leader(); return p != nil }
	f.Check(wait.Within(within, leads), "nobody leads within %v in the end", within)
}

func (f *Fleet) pick() int {
	if i, p := f.Leader(); p != nil && f.Draw(4) > 0 {
		return i
	}
	var alive []int
	for i := range f.places {
		if f.At(i) != nil {
			alive = append(alive, i)
		}
	}
	if len(alive) == 0 {
		return -1
	}
	return alive[f.Draw(len(alive))]
}

// Look is for a process that begins to lead: the referee looks at once.
func (f *Fleet) Look() { f.look(0) }

func (f *Fleet) look(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var leading []Process
	for _, p := range f.places {
		if p != nil && p.Leads() {
			leading = append(leading, p)
		}
	}
	f.report.All += d
	if len(leading) > 0 {
		f.report.Led += d
		f.gap = 0
	}
	f.gap += d
	f.report.Longest = max(f.report.Longest, f.gap)
	for i, q := range leading {
		for _, p := range leading[:i] {
			if fault := f.judge(p, q); fault != "" {
				f.fault(fault)
			}
		}
	}
	if len(leading) == 1 && leading[0] != f.last {
		f.turn(leading[0])
	}
}

// turn records each leader and the one before it.
func (f *Fleet) turn(p Process) {
	n, isNew := p.(*Candidate)
	if f.last != nil {
		_, wasNew := f.last.(*Candidate)
		switch {
		case isNew && !wasNew:
			f.report.OldToNew++
		case wasNew && !isNew:
			f.report.NewToOld++
		}
	}
	f.last = p
	if isNew {
		if n.Token() <= f.token {
			f.report.TokensNotAbove++
		}
		f.token = n.Token()
	}
}

// fault is called under the lock.
func (f *Fleet) fault(text string) {
	if len(f.report.Faults) < 5 {
		f.report.Faults = append(f.report.Faults, fmt.Sprintf("%v: %s", f.report.All, text))
	}
}

// Check records a fault unless ok is true.
func (f *Fleet) Check(ok bool, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok {
		f.fault(fmt.Sprintf(format, args...))
	}
}

// Require fails the test for each fault, for falling tokens, and if there was mostly no leader.
func (r Report) Require(t *testing.T) {
	t.Helper()
	for _, fault := range r.Faults {
		t.Error(fault)
	}
	if r.TokensNotAbove > 0 {
		t.Errorf("%d tokens that were not above the one before", r.TokensNotAbove)
	}
	if r.Led < r.All/3 {
		t.Errorf("there was a leader for only %v of %v", r.Led, r.All)
	}
}

// Add adds the numbers of another report.
func (r *Report) Add(other Report) {
	r.Steps += other.Steps
	r.OldToNew += other.OldToNew
	r.NewToOld += other.NewToOld
	r.Led += other.Led
	r.All += other.All
	r.Longest = max(r.Longest, other.Longest)
}

// String writes the numbers for a log.
func (r Report) String() string {
	return fmt.Sprintf("%d steps, %d times from old to new, %d back; led %.0f %% of %v, without a leader for at most %v",
		r.Steps, r.OldToNew, r.NewToOld, 100*float64(r.Led)/float64(r.All), r.All, r.Longest)
}

// Candidate is a new process: a candidate of Tenure.
type Candidate struct {
	ID    string
	Line  faults.Store // its way to the store
	Begun func()       // called when it begins to lead, unless nil
	Ended func()       // called after it has ended, unless nil

	handOver func(context.Context, string) error
	cancel   context.CancelFunc
	done     chan struct{}

	mu   sync.Mutex
	term *tenure.Term
	won  time.Time
	dead bool
}

// Campaign takes part in an election until End.
func (c *Candidate) Campaign(e *tenure.Election) {
	c.Run(e.HandOver, func(ctx context.Context) {
		_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			_ = c.Lead(ctx)
			<-ctx.Done()
			return nil
		})
	})
}

// Run takes part by calling run, which must call Lead for each term, and return when the context
// ends.
func (c *Candidate) Run(handOver func(context.Context, string) error, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	c.handOver, c.cancel, c.done = handOver, cancel, make(chan struct{})
	go func() {
		defer close(c.done)
		run(ctx)
	}()
}

// Lead begins the term of a context.
func (c *Candidate) Lead(ctx context.Context) error {
	c.mu.Lock()
	c.term, _ = tenure.FromContext(ctx)
	c.won = time.Now()
	c.mu.Unlock()
	if c.Begun != nil {
		c.Begun()
	}
	return nil
}

// Name returns the name for messages.
func (c *Candidate) Name() string { return "new " + c.ID }

// Leads reports whether its term is valid.
func (c *Candidate) Leads() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term != nil && !c.dead && c.term.Err() == nil
}

// Won returns when it began to lead last.
func (c *Candidate) Won() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.won
}

// Token returns the token of its last term, or 0.
func (c *Candidate) Token() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term == nil {
		return 0
	}
	return c.term.Token()
}

// HandOver asks the leader to hand over.
func (c *Candidate) HandOver(ctx context.Context) error { return c.handOver(ctx, "") }

// Trouble asks the leader to hand over within a time, or cuts the candidate off until undo.
func (c *Candidate) Trouble(handOver bool, within time.Duration) (undo func()) {
	if handOver {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		_ = c.HandOver(ctx)
		return cancel
	}
	c.Line.Partition()
	return c.Line.Heal
}

// End ends it, after a last release unless it crashes.
func (c *Candidate) End(crash bool) {
	if crash {
		c.mu.Lock()
		c.dead = true
		c.mu.Unlock()
		c.Line.Partition()
	}
	c.cancel()
	<-c.done
	if c.Ended != nil {
		c.Ended()
	}
}
