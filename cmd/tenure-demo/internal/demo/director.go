package demo

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/stores"
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

// run returns after all candidates have ended. It stays on one thread, which separate needs.
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
