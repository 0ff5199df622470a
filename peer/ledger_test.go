package peer

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
)

// desk is a leader with a clock that the test sets and a store that fails as the test says.
type desk struct {
	*testing.T
	clock *turned
	cells *unreliable
	store *Store
	name  string
}

func newDesk(t *testing.T) *desk {
	d := &desk{T: t, clock: &turned{}, cells: &unreliable{Polled: memory.NewPolled()}}
	d.store = open(t, wires{}, d.cells, func(c *Config) { c.Clock = d.clock })
	d.name = d.store.Incarnation()
	return d
}

// try writes over the present entry, and makes the write fail as given.
func (d *desk) try(f fate, r record.Record) {
	d.Helper()
	e, _ := d.cells.Read(d.Context(), testKey)
	d.cells.next(f)
	_, err := d.store.CompareAndSwap(d.Context(), testKey, e.Version, encode(d, r))
	if (err == nil) != (f == fine) {
		d.Fatalf("write: %v", err)
	}
}

func (d *desk) read() {
	d.Helper()
	if _, err := d.store.Read(d.Context(), testKey); err != nil {
		d.Fatal(err)
	}
}

// shows requires that the n-th write of the term is served. If n is 0, nothing may be served.
func (d *desk) shows(n uint64) {
	d.Helper()
	got := uint64(0)
	if _, p := d.store.books.look(testKey); p != nil {
		got = p.record.Seq
	}
	if got != n {
		d.Errorf("write %d is served, want %d", got, n)
	}
}

// margin is more than the part of the lease that a holder does not use, and less than half of the
// lease.
const margin = time.Second

// TestServedWhileLeaseIsValid: a leader's statements end with its lease as the leader counts it,
// whatever the outcome of its writes.
func TestServedWhileLeaseIsValid(t *testing.T) {
	tests := []struct {
		name string
		why  string
		run  func(*desk)
	}{
		{"no longer than the lease", "another member may lead then", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			d.clock.turn(testLease - margin)
			d.shows(1)
			d.clock.turn(margin)
			d.shows(0)
		}},
		{"the margin is kept back", "the leader itself stops then", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			d.clock.turn(testLease - time.Millisecond)
			d.shows(0)
		}},
		{"a renewal prolongs it", "that is what it is for", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			d.clock.turn(testLease - margin)
			d.try(fine, held(d.name, 1, 2))
			d.clock.turn(testLease - margin)
			d.shows(2)
		}},
		{"a renewal without an answer does not", "it may never have arrived", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			d.clock.turn(testLease - margin)
			d.try(requestLost, held(d.name, 1, 2))
			d.shows(1)
			d.clock.turn(margin)
			d.shows(0)
		}},
		{"a read confirms a write, counted from its send", "a lost answer must not cost the followers", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			d.clock.turn(testLease / 2)
			d.try(answerLost, held(d.name, 1, 2))
			d.clock.turn(testLease / 4)
			d.read()
			d.shows(2)
			d.clock.turn(testLease/2 + margin)
			d.shows(2)
			d.clock.turn(testLease / 4)
			d.shows(0)
		}},
		{"so after a conflict with an own replay", "proxies deliver twice", func(d *desk) {
			d.try(doubled, held(d.name, 1, 1))
			d.shows(0)
			d.read()
			d.shows(1)
		}},
		{"a shorter lease without an answer counts", "it may be the record by now", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			short := held(d.name, 1, 2)
			short.Lease = testLease / 3
			d.try(answerLost, short)
			d.clock.turn(testLease / 3)
			d.shows(0)
		}},
		{"sending a release ends it", "the work has stopped, and the release may be there", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			d.try(requestLost, released(d.name, 1, 2))
			d.shows(0)
		}},
		{"a release ends it", "another may lead at once", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			d.try(fine, released(d.name, 1, 2))
			d.shows(0)
		}},
		{"another holder ends it", "two would say that they lead", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			write(d, d.cells, testKey, held("another", 2, 1))
			d.shows(1)
			d.read()
			d.shows(0)
		}},
		{"absence ends it", "the operator removed the record", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			d.cells.Delete(testKey)
			d.read()
			d.shows(0)
		}},
		{"a release over an absence is not pushed", "another may have led before it was removed", func(d *desk) {
			received := listenTo(d, d.store, testKey)
			d.try(fine, held(d.name, 1, 1))
			d.cells.Purge(testKey)
			d.read()
			d.try(fine, released(d.name, 1, 2))
			if len(received.entries) != 1 {
				d.Errorf("%d pushes", len(received.entries))
			}
		}},
		{"neither is one over an unseen absence", "likewise", func(d *desk) {
			received := listenTo(d, d.store, testKey)
			d.try(fine, held(d.name, 1, 1))
			d.cells.Purge(testKey)
			d.try(fine, held(d.name, 1, 2))
			d.shows(0)
			if len(received.entries) != 1 {
				d.Errorf("%d pushes", len(received.entries))
			}
		}},
		{"a renewal over a request goes on", "the holder read it, and its term is unbroken", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			asked := held(d.name, 1, 1)
			asked.Request = &record.Request{Term: 1}
			write(d, d.cells, testKey, asked)
			d.read()
			d.try(fine, held(d.name, 1, 2))
			d.shows(2)
		}},
		{"an older read does not", "it was under way while the claim was made", func(d *desk) {
			mark := d.store.books.mark(testKey)
			before, _ := d.cells.Read(d.Context(), testKey)
			d.try(fine, held(d.name, 1, 1))
			if _, current := d.store.books.observe(testKey, mark, decode(before)); current {
				d.Error("the read counts as newer than the write")
			}
			d.shows(1)
		}},
		{"a request prolongs nothing", "the holder did not write it", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			d.clock.turn(testLease - margin)
			asked := held(d.name, 1, 1)
			asked.Request = &record.Request{Term: 1}
			d.try(fine, asked)
			d.read()
			d.shows(1)
			d.clock.turn(margin)
			d.shows(0)
		}},
		{"another's incarnation is not served", "there is nothing to prove it with", func(d *desk) {
			d.try(fine, held("another", 1, 1))
			d.shows(0)
		}},
		{"a late answer to an old write is too late", "a newer one is served", func(d *desk) {
			d.try(fine, held(d.name, 1, 1))
			_, first := d.store.books.look(testKey)
			a := d.store.books.begin(testKey, first.version, encode(d, held(d.name, 1, 2)))
			d.try(fine, held(d.name, 1, 3))
			if d.store.books.finish(testKey, a, "old", nil) != nil {
				d.Error("it is pushed")
			}
			d.shows(3)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.run(newDesk(t))
			if t.Failed() {
				t.Logf("why: %s", tt.why)
			}
		})
	}
}

func TestWritesOfUnknownOutcomeAreBounded(t *testing.T) {
	d := newDesk(t)
	for n := range uint64(3 * maxPending) {
		d.try(requestLost, held(d.name, 1, n%60+1))
	}
	if n := len(d.store.books.seats[testKey].pending); n != maxPending {
		t.Errorf("%d are kept", n)
	}
}
