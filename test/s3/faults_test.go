package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/test/internal/acts"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

const (
	faultyLease = 2 * time.Second
	// faultyPatience is how long a leader may take to come about. Nearly every third request fails.
	faultyPatience = 30 * time.Second
)

// TestFaults holds an election on each of many servers at once, which fail in 30 % of requests, each in its own way and one
// in all; and on one that refuses all ETags in quotes. The seed decides which requests fail; in which order they arrive, the machine decides too.
func TestFaults(t *testing.T) {
	t.Parallel()
	all := []s3fake.Fault{
		s3fake.Contended, s3fake.TooMany, s3fake.Broken, s3fake.BrokenLate, s3fake.LoseRequest, s3fake.LoseAnswer,
		s3fake.DelayBefore, s3fake.DelayAfter, s3fake.Refuse, s3fake.RefuseQuoted, s3fake.Missing,
	}
	plans := []s3fake.Plan{{Chances: map[s3fake.Fault]float64{}}, {Chances: map[s3fake.Fault]float64{s3fake.RefuseQuoted: 1}}}
	for _, f := range all {
		plans[0].Chances[f] = 0.3 / float64(len(all))
		plans = append(plans, s3fake.Plan{Chances: map[s3fake.Fault]float64{f: 0.3}})
	}
	terms := 2
	if os.Getenv(realVariable) != "" { // there is time
		terms = 4
	}
	if testing.Short() {
		plans = plans[:2]
	}
	seed := rand.Uint64()
	var running sync.WaitGroup
	var fields []*faulty
	for i, p := range plans {
		p.MaxDelay = faultyLease / 4
		name := fmt.Sprintf("seed %d, %v", seed+uint64(i), p.Chances)
		f := &faulty{TB: t, name: name, terms: terms, server: startFake(t, seed+uint64(i), p), grew: make(chan struct{}, 100)}
		running.Go(func() { f.play(p) })
		fields = append(fields, f)
	}
	running.Wait()
	struck := 0
	for _, f := range fields {
		struck += f.struck
	}
	if struck < 5*terms*len(fields)/4 {
		t.Errorf("%d faults: this run proves little", struck)
	}
}

// faulty is an election on a server that fails.
type faulty struct {
	testing.TB
	name   string
	terms  int
	server *s3fake.Server
	book   acts.Book
	grew   chan struct{}
	struck int // faults, once all is over

	mu      sync.Mutex
	elected []func() // that let the leaders of the terms leave
}

// play has three candidates, and all leaders of so many terms but the last leave in good order after a while.
func (f *faulty) play(p s3fake.Plan) {
	var leave []func()
	for i := range 3 {
		leave = append(leave, f.join(fmt.Sprintf("c%d", i)))
	}
	for n := range f.terms {
		if !f.until(n + 1) {
			f.Errorf("%s: %d terms within %v", f.name, n, faultyPatience)
			break
		}
		time.Sleep(faultyLease * 5 / 4) // a renewal must have come, or the term was lost
		f.leader()()
	}
	for _, l := range leave {
		l()
	}
	f.judge(p)
}

func (f *faulty) judge(p s3fake.Plan) {
	v := f.book.Judge()
	if !v.Safe() {
		f.Errorf("%s: %d answers of yes after the next was elected, up to %v after; %d terms not above the last",
			f.name, v.Stale, v.Overlap, v.Regressed)
	}
	for fault := range p.Chances {
		f.struck += f.server.Struck(fault)
	}
	f.Logf("%s: %d terms, %d answers of yes, %d faults in %d reads and %d writes", f.name, v.Terms, v.Answers, f.struck,
		f.server.Requests("GET"), f.server.Requests("PUT"))
}

// join lets a candidate campaign until it leaves or is made to.
func (f *faulty) join(id string) (leave func()) {
	store, err := s3object.New(f.server.Client(), fakeBucket)
	if err != nil {
		f.Errorf("%v", err)
		return func() {}
	}
	e, err := tenure.New(store, "billing", tenure.Config{ID: id, Lease: faultyLease, OnEvent: f.hear})
	if err != nil {
		f.Errorf("%v", err)
		return func() {}
	}
	asker := asking.Start(func(election string, token uint64, stamps []int64) { f.book.Add(election, id, token, stamps...) })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			f.lead(ctx, e, asker)
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
		asker.Stop()
	})
}

// lead takes part until a term of this candidate was ended by f.leader.
func (f *faulty) lead(ctx context.Context, e *tenure.Election, asker *asking.Asker) {
	err := e.Run(ctx, func(soft context.Context, term *tenure.Term) error {
		own, end := context.WithCancel(soft)
		defer end()
		asker.Enter("billing", term, asking.ByTerm)
		f.enter(end)
		<-own.Done()
		return nil
	})
	if err != nil && ctx.Err() == nil {
		f.Errorf("%s: Run of %s: %v", f.name, e.ID(), err)
	}
}

// hear: a term may end because its time is over, never because a fault is taken for somebody else's write.
func (f *faulty) hear(e tenure.Event) {
	switch {
	case e.Kind == tenure.EventLost && !errors.Is(e.Cause, tenure.ErrExpired):
		f.Errorf("%s: %s lost term %d before its deadline: %v", f.name, e.ID, e.Term, e.Cause)
	case e.Kind == tenure.EventAlarm:
		f.Errorf("%s: alarm at %s: %v", f.name, e.ID, e.Cause)
	}
}

func (f *faulty) enter(end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.elected = append(f.elected, end)
	f.grew <- struct{}{}
}

// until waits for so many terms.
func (f *faulty) until(terms int) bool {
	late := time.After(faultyPatience)
	for {
		f.mu.Lock()
		n := len(f.elected)
		f.mu.Unlock()
		if n >= terms {
			return true
		}
		select {
		case <-f.grew:
		case <-late:
			return false
		}
	}
}

// leader returns what makes the latest leader leave.
func (f *faulty) leader() func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.elected[len(f.elected)-1]
}
