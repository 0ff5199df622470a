package demo

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/witness"
)

// director runs the demo in one goroutine. It receives everything that happens, as functions or as
// entries.
type director struct {
	options Options
	place   stores.Place
	print   printer
	began   stamp.Time

	inbox   chan func()
	sights  <-chan entry
	done    chan struct{}  // closed when the inbox is read no longer
	running sync.WaitGroup // the goroutines that listen to processes

	crew   map[string]*process // the running candidates, by ID
	order  sorter
	acts   acts
	ledger *ledger

	trials   []trial
	due      bool
	stopping bool
	failed   error
}

func newDirector(o Options, place stores.Place, p printer) *director {
	d := &director{
		options: o, place: place, print: p, began: stamp.Now(),
		inbox: make(chan func()), done: make(chan struct{}),
		crew: map[string]*process{}, trials: trials(),
		acts: acts{last: map[uint64]stamp.Time{}},
	}
	d.ledger = newLedger(d.acts.lastOf, o.slack())
	return d
}

// run returns after all candidates have ended. It stays on one thread, as crew.Start
// asks for.
func (d *director) run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := range d.options.Candidates {
		d.start(i + 1)
	}
	if d.options.CrashEvery > 0 {
		d.after(d.options.CrashEvery, d.tick)
	}
	d.loop(ctx.Done())
	close(d.done)
	d.running.Wait()
	return d.failed
}

func (d *director) loop(ended <-chan struct{}) {
	wake := time.NewTimer(hold)
	defer wake.Stop()
	for !d.stopping || len(d.crew) > 0 {
		if wait, ok := d.order.next(stamp.Now()); ok {
			wake.Reset(wait)
		}
		select {
		case f := <-d.inbox:
			f()
		case e := <-d.sights:
			d.order.add(e)
		case <-wake.C:
		case <-ended:
			ended = nil
			d.stop()
		}
		d.settle(d.order.due(stamp.Now()))
		d.attempt()
	}
	d.settle(d.order.waiting)
}

// post hands f to the loop, and drops it after the loop has ended.
func (d *director) post(f func()) {
	select {
	case d.inbox <- f:
	case <-d.done:
	}
}

func (d *director) after(wait time.Duration, f func()) {
	time.AfterFunc(wait, func() { d.post(f) })
}

// note adds an entry for a deed that is done now.
func (d *director) note(what deed) {
	what.time = time.Now()
	d.order.add(entry{at: stamp.Now(), deed: &what})
}

// settle processes entries, which are in order.
func (d *director) settle(entries []entry) {
	for _, e := range entries {
		f := d.ledger.take(e)
		if e.deed != nil && e.deed.do == doPeer {
			// reports of the former leader do not arrive, which is normal
			e.deed.expected = !d.ledger.settled(e.at, d.options.Lease)
		}
		if e.sight != nil {
			d.print.see(e, d.acts.n)
			continue
		}
		d.print.show(e, f)
	}
}

// fail ends the demo with an error; the first one counts.
func (d *director) fail(err error) {
	if d.failed == nil {
		d.failed = err
		d.stop()
	}
}

func (d *director) summary() summary {
	return summary{
		lasted: stamp.Now().Sub(d.began), elections: d.ledger.elections, first: d.ledger.first, last: d.ledger.term,
		rows: d.ledger.tally.rows(), failovers: d.ledger.tally.total(), acts: d.acts.n, overlaps: d.acts.overlaps,
	}
}

// stopWithin is how long candidates have to end by themselves.
const stopWithin = 5 * time.Second

// process is the process of a candidate.
type process struct {
	*crew.Process
	id     string
	paused bool
	ending bool // the demo has asked it to end, or killed it
}

// start runs the i-th candidate, and runs it again whenever it has ended.
func (d *director) start(i int) {
	if d.stopping {
		return
	}
	s := d.options.spec(i, d.place)
	p := &process{id: s.ID}
	var err error
	p.Process, err = crew.Hire(d.options.Command(s.ID), s,
		func(r report) { d.post(func() { d.hear(p, r) }) },
		func(line string) { d.post(func() { d.note(deed{do: doOutput, id: s.ID, text: line}) }) })
	if err != nil {
		d.fail(fault.New("", "a candidate cannot be started: %w", err))
		return
	}
	d.crew[s.ID] = p
	d.note(deed{do: doStart, id: s.ID, pid: p.PID()})
	d.running.Go(func() {
		err := p.Wait()
		d.post(func() { d.ended(i, p, err) })
	})
}

// ended starts a candidate again after half a lease, as a service manager would.
func (d *director) ended(i int, p *process, err error) {
	delete(d.crew, p.id)
	if !p.ending {
		reason := "by itself"
		if err != nil {
			reason = err.Error()
		}
		d.note(deed{do: doDied, id: p.id, pid: p.PID(), text: reason})
	}
	if d.stopping {
		d.endLast()
		return
	}
	d.after(d.options.Lease/2, func() { d.start(i) })
}

// hear takes a report. Acts need not be sorted, since the witness takes them in any order.
func (d *director) hear(p *process, r report) {
	switch {
	case r.Act != 0:
		for _, o := range d.acts.add(r.Act, p.id, p.PID(), r.At) {
			d.print.overlap(time.Now(), o)
		}
	case r.Event != nil:
		d.hearEvent(p, r)
	case r.Wrote != nil:
		d.order.add(entry{at: r.At, sight: read(driver.Entry{Value: r.Wrote})})
	case r.Peer != "":
		d.order.add(entry{at: r.At, deed: &deed{time: time.Now(), do: doPeer, id: p.id, text: r.Peer}})
	case r.Fault != "":
		d.hearFault(p, r)
	}
}

func (d *director) hearEvent(p *process, r report) {
	e, err := r.event()
	if err != nil {
		d.note(deed{do: doOutput, id: p.id, text: fmt.Sprintf("an event that cannot be read: %v", err)})
		return
	}
	d.order.add(entry{at: r.At, event: e})
}

// hearFault ends the demo if there never was a leader, since the other candidates would have the
// same fault. After the first leader a missing right is reported as trouble, by an event of its
// own.
func (d *director) hearFault(p *process, r report) {
	switch led := d.ledger.elections > 0; {
	case led && r.Denied:
	case led:
		d.note(deed{do: doOutput, id: p.id, text: r.Fault})
	case r.Denied:
		d.fail(d.place.Denied(r.Fault))
	default:
		d.fail(fault.New("", "candidate %s: %s", p.id, r.Fault))
	}
}

// stop ends all candidates: the leader last, so that no candidate is elected just before its end.
func (d *director) stop() {
	if d.stopping {
		return
	}
	d.stopping = true
	for id, p := range d.crew {
		if id != d.ledger.leader {
			p.end()
		}
	}
	d.endLast()
	d.after(stopWithin/2, d.endAll)
	d.after(stopWithin, func() {
		for _, p := range d.crew {
			_ = p.Kill()
		}
	})
}

// endLast ends the leader, or the last candidate that runs.
func (d *director) endLast() {
	if len(d.crew) == 1 {
		d.endAll()
	}
}

func (d *director) endAll() {
	for _, p := range d.crew {
		p.end()
	}
}

// end asks a process to end, frozen or not.
func (p *process) end() {
	p.ending = true
	_ = p.Stop()
	_ = p.Continue()
}

// trial is one way to disturb a leader.
type trial func(d *director, leader *process)

// trials returns those that are used in turn.
func trials() []trial {
	all := []trial{(*director).killLeader, (*director).stopLeader}
	if crew.CanFreeze {
		all = []trial{(*director).killLeader, (*director).pauseLeader, (*director).stopLeader}
	}
	return all
}

func (d *director) killLeader(p *process) {
	d.note(deed{do: doKill, id: p.id, term: d.ledger.term})
	p.ending = true
	_ = p.Kill()
}

// pauseLeader freezes the leader for two leases: long enough for another candidate to lead when it
// wakes.
func (d *director) pauseLeader(p *process) {
	d.note(deed{do: doPause, id: p.id, term: d.ledger.term})
	p.paused = true
	_ = p.Freeze()
	d.after(2*d.options.Lease, func() { d.resume(p) })
}

func (d *director) resume(p *process) {
	if d.crew[p.id] != p || d.stopping {
		return
	}
	d.note(deed{do: doResume, id: p.id})
	p.paused = false
	_ = p.Continue()
}

func (d *director) stopLeader(p *process) {
	d.note(deed{do: doStop, id: p.id, term: d.ledger.term})
	p.ending = true
	_ = p.Stop()
}

// tick makes the next trial due. The trial waits until there is a leader that has acted: to disturb
// another one would show nothing.
func (d *director) tick() {
	d.due = true
	d.after(d.options.CrashEvery, d.tick)
}

// attempt runs the next trial if it is due and there is a leader to disturb.
func (d *director) attempt() {
	if !d.due || d.stopping {
		return
	}
	if p := d.leader(); p != nil {
		d.due = false
		d.trials[0](d, p)
		d.trials = append(d.trials[1:], d.trials[0])
	}
}

// leader returns the process of the leader, or nil if it cannot be disturbed now.
func (d *director) leader() *process {
	p := d.crew[d.ledger.leader]
	if p == nil || p.paused || p.ending || !d.ledger.leads() {
		return nil
	}
	if _, acted := d.acts.lastOf(d.ledger.term); !acted {
		return nil
	}
	return p
}

// acts counts all acts, and passes them to the witness, which detects overlaps.
type acts struct {
	book        witness.Book
	n, overlaps int
	last        map[uint64]stamp.Time // by token
}

// add takes one act of a candidate's process, in any order, and returns the overlaps that it shows.
func (a *acts) add(token uint64, id string, pid int, at stamp.Time) []witness.Overlap {
	a.n++
	a.last[token] = max(a.last[token], at)
	found := a.book.Add("", fmt.Sprintf("%s (process %d)", id, pid), token, int64(at))
	a.overlaps += len(found)
	return found
}

// lastOf returns the time of the last act with a token; false if there was none.
func (a *acts) lastOf(token uint64) (stamp.Time, bool) {
	at, ok := a.last[token]
	return at, ok
}

// idOf returns the ID of the candidate that the witness names.
func idOf(s witness.Span) string {
	id, _, _ := strings.Cut(s.Who, " ")
	return id
}
