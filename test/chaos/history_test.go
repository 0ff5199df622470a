package chaos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/tenure-go/tenure/driver"
)

// history is what clients did to one cell and what came of it. Every value is written once, so a value names a state of
// the cell, and the version under which it was seen names the same.
type history struct {
	began time.Time

	mu    sync.Mutex
	calls []call
	seen  map[driver.Version]string // the value of each version; "" is absent
}

// call is one operation. For a write, prev is what it expected and value what it wrote.
type call struct {
	client     int
	write      bool
	prev       driver.Version
	value      string
	version    driver.Version
	err        error
	began, end time.Duration
}

func newHistory() *history {
	return &history{began: time.Now(), seen: map[driver.Version]string{}}
}

func (h *history) read(ctx context.Context, s driver.Store, client int) (driver.Version, bool) {
	c := call{client: client, began: time.Since(h.began)}
	e, err := s.Read(ctx, key)
	c.value, c.version, c.err = string(e.Value), e.Version, err
	h.add(c)
	return e.Version, err == nil
}

func (h *history) swap(ctx context.Context, s driver.Store, client int, prev driver.Version, value string) (driver.Version, bool) {
	c := call{client: client, write: true, prev: prev, value: value, began: time.Since(h.began)}
	c.version, c.err = s.CompareAndSwap(ctx, key, prev, []byte(value))
	h.add(c)
	return c.version, c.err == nil
}

func (h *history) add(c call) {
	c.end = time.Since(h.began)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// versions notes which value each version stands for, and refuses a version that stands for two.
func (h *history) versions(t testing.TB) {
	t.Helper()
	for _, c := range h.calls {
		if c.err != nil {
			continue
		}
		if other, ok := h.seen[c.version]; ok && other != c.value {
			t.Errorf("version %q is that of %q and of %q", c.version, other, c.value)
		}
		h.seen[c.version] = c.value
	}
}

// kind is a call as the model sees it.
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

// rules are what a regime does to the meaning of a refusal.
type rules struct {
	// replayed: of two deliveries of one write the first may have been applied, and made the second be refused.
	replayed bool
	// hasty: a write may be refused for the sake of another that is still on its way to the replicas and not yet in the
	// cell, or never will be.
	hasty bool
}

// operations are what must fit into one order.
//
// A write of unknown outcome was applied if anybody ever saw its value, at any time after it began; how it ended says
// nothing. Nobody saw the others, not even the last read, and they restrict nothing.
func (h *history) operations(t testing.TB, r rules) []porcupine.Operation {
	t.Helper()
	applied := map[string]bool{}
	for _, value := range h.seen {
		applied[value] = true
	}
	var all []porcupine.Operation
	for _, c := range h.calls {
		if s, end, ok := h.step(t, c, applied[c.value], r); ok {
			all = append(all, porcupine.Operation{
				ClientId: c.client, Input: s, Call: int64(c.began), Return: int64(end),
			})
		}
	}
	return all
}

func (h *history) step(t testing.TB, c call, applied bool, r rules) (s step, end time.Duration, ok bool) {
	expected := h.seen[c.prev]
	conflict := errors.Is(c.err, driver.ErrConflict)
	switch {
	case !c.write:
		return step{kind: saw, value: c.value}, c.end, c.err == nil
	case c.err == nil:
		return step{swapped, expected, c.value}, c.end, true
	case conflict && applied && !r.replayed:
		t.Errorf("%q was refused and is in the cell", c.value)
		return step{}, 0, false
	case applied:
		return step{swapped, expected, c.value}, math.MaxInt64, true
	case conflict && !r.replayed && !r.hasty:
		return step{refused, expected, c.value}, c.end, true
	}
	return step{}, 0, false
}

// check requires an order.
func (h *history) check(t testing.TB, r rules) {
	t.Helper()
	h.versions(t)
	if !h.ordered(t, r) {
		t.Error("there is no order that explains the history")
	}
}

func (h *history) ordered(t testing.TB, r rules) bool {
	t.Helper()
	return porcupine.CheckOperationsTimeout(register, h.operations(t, r), patience) == porcupine.Ok
}

// tally says what happened, so that a run that proves nothing is seen.
func (h *history) tally() (reads, swaps, refusals, unknowns int) {
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
