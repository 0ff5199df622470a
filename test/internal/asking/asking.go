// Package asking is the work of leaders under test: it asks again and again whether the leader may
// act, and stamps each question.
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

// Way says how the work of a leader decides that it may act.
type Way string

// The ways.
const (
	Never    Way = ""
	ByTerm   Way = "term"   // by Term.Err
	ByMemory Way = "memory" // by a flag that follows events, some time later: a planted mistake
)

// Tell receives the stamps of questions that were answered yes, in their order. It may keep the
// slice.
type Tell func(election string, token uint64, stamps []int64)

// Asker asks for all terms of one candidate. It goes on asking after the end of a term, to find
// wrong answers.
type Asker struct {
	tell  Tell
	stop  chan struct{}
	begin sync.Once // of the questions: idle workers must not load the machine
	done  sync.WaitGroup

	mu     sync.Mutex
	rounds int
	terms  map[string]*asked // the last one of each election
}

// asked is a term about which the Asker asks.
type asked struct {
	election string
	term     *tenure.Term
	way      Way
	believes bool // the flag of ByMemory
	heard    bool // an event said that another candidate leads
	stamps   []int64
}

// Start returns an Asker, which Stop ends.
func Start(tell Tell) *Asker {
	return &Asker{tell: tell, stop: make(chan struct{}), terms: map[string]*asked{}}
}

// Stop ends the Asker. Before it returns, it passes all stamps to Tell.
func (a *Asker) Stop() {
	close(a.stop)
	a.done.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.terms {
		a.flush(t)
	}
}

// Enter begins to ask about a new term. Call it first in lead. It returns the time of the call.
func (a *Asker) Enter(election string, t *tenure.Term, way Way) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := machine.Now()
	if way == Never {
		return now
	}
	a.begin.Do(func() { a.done.Go(a.run) })
	if last := a.terms[election]; last != nil {
		a.flush(last)
	}
	a.terms[election] = &asked{election: election, term: t, way: way, believes: true, stamps: []int64{now}}
	return now
}

// Hear passes on the events of the candidate, for work that decides ByMemory.
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

// refresh is the number of rounds between two updates of the flag: 50 ms, as in work that looks up
// the leader now and then.
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

// question takes the stamp before it asks: the answer may be younger than its stamp, never older.
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
