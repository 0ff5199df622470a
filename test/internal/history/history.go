// Package history records the calls of clients on one cell of a store, and checks that the cell is
// linearizable: that one register explains all answers. Elections rely on nothing else.
package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// History holds the calls of clients on one cell and their answers. Every value is written once, so
// a value and its version both identify one state of the cell.
type History struct {
	key   string
	began time.Time

	mu    sync.Mutex
	calls []call
	seen  map[driver.Version]string // the value of each version; "" is absent
	torn  int
	ages  map[string]time.Duration // when the last call began that was answered in an era
	wrong []string                 // answers that no order can explain
}

// call is one operation. For a write, prev is the expected version and value the written one.
type call struct {
	client     int
	write      bool
	prev       driver.Version
	value      string
	version    driver.Version
	err        error
	began, end time.Duration
}

// New returns the history of the cell under a key that is absent.
func New(key string) *History {
	return &History{key: key, began: time.Now(), seen: map[driver.Version]string{}}
}

// Read reads the cell for a client. It returns the version, and whether the read succeeded.
func (h *History) Read(ctx context.Context, s driver.Store, client int) (driver.Version, bool) {
	c := call{client: client, began: time.Since(h.began)}
	e, err := s.Read(ctx, h.key)
	c.value, c.version, c.err = string(e.Value), e.Version, err
	h.add(c)
	return e.Version, err == nil
}

// Swap writes a value that was never written before. It returns the version, and whether the write
// was acknowledged.
func (h *History) Swap(ctx context.Context, s driver.Store, client int, prev driver.Version, value string) (driver.Version, bool) {
	c := call{client: client, write: true, prev: prev, value: value, began: time.Since(h.began)}
	c.version, c.err = s.CompareAndSwap(ctx, h.key, prev, []byte(value))
	h.add(c)
	return c.version, c.err == nil
}

func (h *History) add(c call) {
	c.end = time.Since(h.began)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// versions notes the value of each version. A version with two values is a fault.
func (h *History) versions(r Rules) {
	h.named(r)
	for _, c := range h.calls {
		if c.err != nil {
			continue
		}
		other, known := h.seen[c.version]
		switch {
		case !known || other == c.value:
			h.seen[c.version] = c.value
		case r.Version != nil && !c.write:
			h.torn++
		default:
			h.wrong = append(h.wrong, fmt.Sprintf("version %q is that of %q and of %q", c.version, other, c.value))
		}
	}
}

// named notes the versions that Rules.Version derives from the written values.
func (h *History) named(r Rules) {
	if r.Version == nil {
		return
	}
	h.seen[""] = ""
	for _, c := range h.calls {
		if c.write {
			h.seen[r.Version(c.value)] = c.value
		}
	}
}

// kind is the kind of a call in the model.
type kind int

const (
	saw     kind = iota // the cell held the value
	swapped             // from the expected value to the new one
	refused             // the cell did not hold the expected value
)

// step is the input of the model.
type step struct {
	kind            kind
	expected, value string
}

// register is a cell. Its state is its value.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		switch s := input.(step); s.kind {
		case saw:
			return state == s.value, state
		case swapped:
			return state == s.expected, s.value
		default:
			return state != s.expected, state
		}
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// Rules say how far a server may deviate from one register under the faults of a test.
type Rules struct {
	// Replayed: a write may be delivered twice. The first delivery may be applied, and then the
	// second is refused.
	Replayed bool
	// Hasty: a write may be refused because of another write that is still on its way to the
	// replicas, and may never reach the cell.
	Hasty bool
	// Stale: a read may return an old state, for example from a server that has not noticed that
	// it no longer leads. Then only the writes and the last call must fit into one order, and each
	// version must belong to one value.
	Stale bool
	// Early: a read may return a write that is not yet durable, and a crash may then undo the
	// write. Then only the acknowledged writes, those that they replaced, and the last call must
	// fit into one order.
	Early bool
	// Era returns the era in a version, if the store refuses versions of another era than the
	// present one even if the state is still the same. Eras change only by a fault, and none comes
	// back. Such a refusal proves nothing if no later answer is of the era of its version.
	Era func(driver.Version) string
	// Version is for a store that reads a version and its value one after the other, so that the
	// version may be older than the value. Version returns the version of a value. Such a read
	// counts as a read of the value. A swap from the version that it returned expects the earlier
	// value, so it must be refused.
	Version func(value string) driver.Version
}

// EraAtTheEnd is Rules.Era for versions that end in a space and the era.
func EraAtTheEnd(v driver.Version) string {
	return string(v[strings.LastIndexByte(string(v), ' ')+1:])
}

// operations returns the calls that must fit into one order.
//
// A write of unknown outcome was applied if any client ever saw its value. It may have been applied
// at any time after it began. If no client saw its value, not even the last read, it is left out.
func (h *History) operations(r Rules) []porcupine.Operation {
	applied := map[string]bool{}
	for _, c := range h.calls {
		if c.err == nil && (c.write || !r.Early || c.began == h.last()) {
			applied[c.value] = true
		}
	}
	if r.Early {
		h.replaced(applied)
	}
	if r.Era != nil {
		h.ages = map[string]time.Duration{}
		for _, c := range h.calls {
			if c.err == nil {
				h.ages[r.Era(c.version)] = max(h.ages[r.Era(c.version)], c.began)
			}
		}
	}
	var all []porcupine.Operation
	for _, c := range h.calls {
		if s, end, ok := h.step(c, applied[c.value], r); ok {
			all = append(all, porcupine.Operation{
				ClientId: c.client, Input: s, Call: int64(c.began), Return: int64(end),
			})
		}
	}
	return all
}

// replaced adds the values that applied writes replaced, again and again until there are no more.
func (h *History) replaced(applied map[string]bool) {
	for grown := true; grown; {
		grown = false
		for _, c := range h.calls {
			if before := h.seen[c.prev]; c.write && applied[c.value] && !applied[before] {
				applied[before], grown = true, true
			}
		}
	}
}

func (h *History) step(c call, applied bool, r Rules) (s step, end time.Duration, ok bool) {
	expected := h.seen[c.prev]
	conflict := errors.Is(c.err, driver.ErrConflict)
	switch {
	case !c.write:
		return step{kind: saw, value: c.value}, c.end, c.err == nil && (!r.Stale && !r.Early || c.began == h.last())
	case c.err == nil:
		return step{swapped, expected, c.value}, c.end, true
	case conflict && applied && !r.Replayed:
		h.wrong = append(h.wrong, fmt.Sprintf("%q was refused and is in the cell", c.value))
		return step{}, 0, false
	case applied:
		return step{swapped, expected, c.value}, math.MaxInt64, true
	case conflict && r.Era != nil && h.ages[r.Era(c.prev)] < c.end:
		return step{}, 0, false
	case conflict && !r.Replayed && !r.Hasty && !r.Early:
		return step{refused, expected, c.value}, c.end, true
	}
	return step{}, 0, false
}

// last returns the time when the last call began.
func (h *History) last() (began time.Duration) {
	for _, c := range h.calls {
		began = max(began, c.began)
	}
	return began
}

// Check fails the test unless there is an order of all calls that explains their answers. It is
// called once, when all clients have ended and the cell was read once more.
func (h *History) Check(t testing.TB, r Rules) {
	t.Helper()
	for _, what := range h.Faults(r) {
		t.Error(what)
	}
}

// Faults is Check for tests that expect faults.
func (h *History) Faults(r Rules) []string {
	h.versions(r)
	switch h.ordered(r) {
	case porcupine.Illegal:
		h.wrong = append(h.wrong, "there is no order that explains the history")
	case porcupine.Unknown:
		h.wrong = append(h.wrong, "the time limit of the tests ends the search for an order that explains the history")
	}
	return h.wrong
}

func (h *History) ordered(r Rules) porcupine.CheckResult {
	// 0 would mean no limit.
	return porcupine.CheckOperationsTimeout(register, h.operations(r), max(wait.Left(), 1))
}

// Torn returns how many reads returned a version that is not the value's. Call it after Check or
// Faults.
func (h *History) Torn() int { return h.torn }

// Tally counts the calls, so that a test can fail if too few happened to prove anything.
func (h *History) Tally() (reads, swaps, refusals, unknowns int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		switch {
		case c.err == nil && c.write:
			swaps++
		case c.err == nil:
			reads++
		case errors.Is(c.err, driver.ErrConflict):
			refusals++
		default:
			unknowns++
		}
	}
	return reads, swaps, refusals, unknowns
}

// Client is one of several that work on the cell at the same time.
type Client struct {
	// ID is unique among the clients.
	ID int
	// Attention is how long the client waits for an answer.
	Attention time.Duration
	// Rand decides its next call.
	Rand *rand.Rand
}

// Play reads and writes until the context ends. After a failed write it sometimes writes again over
// the same version. The store must refuse that if another write came between.
func (h *History) Play(ctx context.Context, s driver.Store, c Client) {
	version, known := driver.Version(""), false
	for n := 0; ctx.Err() == nil; n++ {
		attempt, cancel := context.WithTimeout(context.Background(), c.Attention)
		if known && c.Rand.IntN(3) > 0 {
			if next, ok := h.Swap(attempt, s, c.ID, version, fmt.Sprintf("%d-%d", c.ID, n)); ok {
				version = next
			} else {
				known = c.Rand.IntN(2) > 0
			}
		} else if next, ok := h.Read(attempt, s, c.ID); ok {
			version, known = next, true
		}
		cancel()
		time.Sleep(time.Duration(c.Rand.IntN(4000)) * time.Microsecond)
	}
}

// Lasting returns a context for Play. It ends when the time has passed and enough has happened,
// which may take longer on a busy machine. The time limit of the tests ends it as well.
func Lasting(least time.Duration, enough func() bool) (context.Context, context.CancelFunc) {
	ctx, cancel := wait.Background()
	go func() {
		for wait := least; ctx.Err() == nil; wait = 50 * time.Millisecond {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			if enough() {
				cancel()
			}
		}
	}()
	return ctx, cancel
}
