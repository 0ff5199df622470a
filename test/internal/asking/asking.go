// Package asking is the work of leaders under test: it asks again and again whether it may act, and
// stamps each question.
package asking

import (
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/test/internal/machine"
)

const (
	// pace is the time from one question to the next.
	pace = 2 * time.Millisecond
	// batch is how many answers are reported at once.
	batch = 25
)

// Way is how the work of a leader decides that it may act.
type Way string

// The ways.
const (
	Never    Way = ""
	ByTerm   Way = "term"   // by Term.Err
	ByMemory Way = "memory" // by a flag that follows events, some time later: a planted mistake
)

// Tell is given the stamps of questions that were answered yes, in their order. The slice is the
// receiver's to keep.
type Tell func(election string, token uint64, stamps []int64)

// Asker asks for all leaders of one candidate. It goes on asking when a term is over, because it
// looks for a wrong answer then.
type Asker struct {
	tell Tell
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	rounds int
	terms  map[string]*asked // the last one of each election
}

// asked is a term that is asked about.
type asked struct {
	election string
	term     *tenure.Term
	way      Way
	believes bool // the flag
	heard    bool // that another leads
	stamps   []int64
}

// Start begins to ask.
func Start(tell Tell) *Asker {
	a := &Asker{tell: tell, stop: make(chan struct{}), terms: map[string]*asked{}}
	a.done.Go(a.run)
	return a
}

// Stop ends it, after everything was told.
func (a *Asker) Stop() {
	close(a.stop)
	a.done.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.terms {
		a.flush(t)
	}
}

// Enter is called on being elected, and returns when that was.
func (a *Asker) Enter(election string, t *tenure.Term, way Way) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := machine.Now()
	if way == Never {
		return now
	}
	if last := a.terms[election]; last != nil {
		a.flush(last)
	}
	a.terms[election] = &asked{election: election, term: t, way: way, believes: true, stamps: []int64{now}}
	return now
}

// Hear takes events, by which work that goes by memory gives up.
func (a *Asker) Hear(e tenure.Event) {
	other := e.Kind == tenure.EventLeader && e.Leader.Exists() && e.Leader.ID != e.ID
	if !other && e.Kind != tenure.EventReleased {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.terms[e.Election]; t != nil {
		t.heard = true
	}
}

// refresh is how many rounds a flag may be old: 50 ms, as in work that looks up the leader now and
// then.
const refresh = 25

func (a *Asker) run() {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-tick.C:
			a.round()
		}
	}
}

func (a *Asker) round() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rounds++
	for _, t := range a.terms {
		if a.rounds%refresh == 0 {
			t.believes = !t.heard
		}
		a.question(t)
	}
}

// question takes the stamp first: the answer may be younger than its stamp, never older.
func (a *Asker) question(t *asked) {
	now := machine.Now()
	if !t.may() {
		a.flush(t)
		return
	}
	t.stamps = append(t.stamps, now)
	if len(t.stamps) >= batch {
		a.flush(t)
	}
}

func (t *asked) may() bool {
	if t.way == ByMemory {
		return t.believes
	}
	return t.term.Err() == nil
}

func (a *Asker) flush(t *asked) {
	if len(t.stamps) > 0 {
		a.tell(t.election, t.term.Token(), slices.Clone(t.stamps))
		t.stamps = t.stamps[:0]
	}
}
