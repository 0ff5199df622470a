package peer

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
)

// desk is a leader with a lease that the test ends and a store that fails as the test says.
type desk struct {
	*testing.T
	over   bool // the election says that its lease is over
	cells  *memory.Polled
	faults faults.Store
	store  *Store
	name   string
	pushed *receiver
}

func newDesk(t *testing.T) *desk {
	d := &desk{T: t, cells: memory.NewPolled()}
	d.faults = faults.New(d.cells, 1, faults.Plan{})
	d.store = open(t, wires{}, d.faults, nil)
	d.name = d.store.Incarnation(func(term uint64) time.Duration {
		if d.over || term != 1 {
			return 0
		}
		return time.Minute
	})
	d.pushed = listenTo(t, d.store, testKey)
	return d
}

// try writes over the present entry, with a fault.
func (d *desk) try(f faults.Fault, r record.Record) {
	d.Helper()
	e, _ := d.cells.Read(d.Context(), testKey)
	d.faults.Next(faults.Write, f)
	_, err := d.store.CompareAndSwap(d.Context(), testKey, e.Version, encode(d, r))
	if (err == nil) != (f == faults.None) {
		d.Fatalf("write: %v", err)
	}
}

// play carries out a timeline: writes by their numbers in the term, the end of the lease, and how
// much is served and pushed then. If 0 is served, nothing may be.
func (d *desk) play(timeline string) {
	asked := held(d.name, 1, 1)
	asked.Request = &record.Request{Term: 1}
	for step := range strings.SplitSeq(timeline, ", ") {
		what, argument, _ := strings.Cut(step, " ")
		n, _ := strconv.ParseUint(argument, 10, 64)
		switch what {
		case "lease-over":
			d.over = true
		case "lease-valid":
			d.over = false
		case "write-term":
			d.try(faults.None, held(d.name, n, 1))
		case "write":
			d.try(faults.None, held(d.name, 1, n))
		case "lose":
			d.try(faults.Fail, held(d.name, 1, n))
		case "apply-unanswered":
			d.try(faults.LoseAnswer, held(d.name, 1, n))
		case "apply-twice":
			d.try(faults.Replay, held(d.name, 1, n))
		case "release":
			d.try(faults.None, released(d.name, 1, n))
		case "lose-release":
			d.try(faults.Fail, released(d.name, 1, n))
		case "write-request":
			d.try(faults.None, asked)
		case "write-stranger":
			d.try(faults.None, held("another", 1, 1))
		case "elsewhere-request":
			write(d, d.cells, testKey, asked)
		case "elsewhere-leader":
			write(d, d.cells, testKey, held("another", 2, 1))
		case "delete":
			d.cells.Delete(testKey)
		case "purge":
			d.cells.Purge(testKey)
		case "read":
			if _, err := d.store.Read(d.Context(), testKey); err != nil {
				d.Fatal(err)
			}
		case "serves":
			got := uint64(0)
			if _, p := d.store.books.look(testKey); p != nil {
				got = p.record.Seq
			}
			if got != n {
				d.Errorf("write %d is served, want %d", got, n)
			}
		case "pushed":
			if got := len(d.pushed.entries); got != int(n) {
				d.Errorf("%d pushes", got)
			}
		default:
			d.Fatalf("unknown step %q", step)
		}
	}
}

// TestServedWhileLeaseIsValid: a leader's statements end with its lease as its election counts it,
// and with its term.
func TestServedWhileLeaseIsValid(t *testing.T) {
	for _, tt := range []struct{ name, why, timeline string }{
		{"no longer than the lease", "another member may lead then", "write 1, serves 1, lease-over, serves 0"},
		{"a renewal is served", "it shows the lease that is valid", "write 1, write 2, serves 2"},
		{"a renewal without an answer is not", "it may never have arrived", "write 1, lose 2, serves 1, lease-over, serves 0"},
		{"a read confirms a write", "a lost answer must not cost the followers",
			"write 1, apply-unanswered 2, serves 1, read, serves 2, lease-over, serves 0"},
		{"a claim is served in its term", "the election does not lead in another", "write-term 2, serves 0"},
		{"a renewal sent after the lease is not pushed", "another may have led before a backup was restored",
			"write 1, lease-over, write 2, lease-valid, serves 0, pushed 1"},
		{"nor is such a release", "likewise", "write 1, lease-over, release 2, pushed 1"},
		{"so after a conflict with an own replay", "proxies deliver twice", "apply-twice 1, serves 0, read, serves 1"},
		{"sending a release ends it", "the work has stopped, and the release may be there",
			"write 1, lose-release 2, serves 0"},
		{"a release ends it", "another may lead at once", "write 1, release 2, serves 0"},
		{"another holder ends it", "two would say that they lead", "write 1, elsewhere-leader, serves 1, read, serves 0"},
		{"absence ends it", "the operator removed the record", "write 1, delete, read, serves 0"},
		{"a release over an absence is not pushed", "another may have led before it was removed",
			"write 1, purge, read, release 2, pushed 1"},
		{"neither is one over an unseen absence", "likewise", "write 1, purge, write 2, serves 0, pushed 1"},
		{"a renewal over a request goes on", "the holder read it, and its term is unbroken",
			"write 1, elsewhere-request, read, write 2, serves 2"},
		{"a request prolongs nothing", "the holder did not write it",
			"write 1, write-request, read, serves 1, lease-over, serves 0"},
		{"another's incarnation is not served", "there is nothing to prove it with", "write-stranger, serves 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newDesk(t).play(tt.timeline)
			if t.Failed() {
				t.Logf("why: %s", tt.why)
			}
		})
	}
}

func TestOldAnswersChangeNothing(t *testing.T) {
	d := newDesk(t)
	mark := d.store.books.mark(testKey)
	before, _ := d.cells.Read(t.Context(), testKey)
	d.play("write 1, serves 1")
	if _, current := d.store.books.observe(testKey, mark, decode(before)); current {
		t.Error("a read that was under way while the claim was made counts as newer")
	}
	d.play("serves 1")
	_, first := d.store.books.look(testKey)
	a := d.store.books.begin(testKey, first.version, encode(t, held(d.name, 1, 2)))
	d.play("write 3")
	if d.store.books.finish(testKey, a, "old", nil) != nil {
		t.Error("a late answer to an old write is pushed")
	}
	d.play("serves 3")
}

func TestWritesOfUnknownOutcomeAreBounded(t *testing.T) {
	d := newDesk(t)
	for n := range uint64(3 * maxPending) {
		d.try(faults.Fail, held(d.name, 1, n%60+1))
	}
	if n := len(d.store.books.seats[testKey].pending); n != maxPending {
		t.Errorf("%d are kept", n)
	}
}
