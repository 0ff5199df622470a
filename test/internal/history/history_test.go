package history

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/tenure-go/tenure/driver"
)

// TestCheckerSeesFaults: a checker that accepted everything would also accept the histories of
// other tests.
func TestCheckerSeesFaults(t *testing.T) {
	const ms = time.Millisecond
	lost := errors.New("connection lost")
	type history struct {
		name  string
		calls []call
		want  bool
	}
	begin := []call{
		{version: "0"},
		{write: true, prev: "0", value: "a", version: "1", began: 1 * ms, end: 2 * ms},
	}
	for _, group := range []struct {
		name      string
		rules     Rules
		before    []call
		histories []history
	}{
		{"", Rules{}, begin[:1], []history{
			{"in order", []call{
				{write: true, prev: "0", value: "a", version: "1", began: 1 * ms, end: 2 * ms},
				{value: "a", version: "1", began: 3 * ms, end: 4 * ms},
			}, true},
			{"a stale read", []call{
				{write: true, prev: "0", value: "a", version: "1", began: 1 * ms, end: 2 * ms},
				{write: true, prev: "1", value: "b", version: "2", began: 3 * ms, end: 4 * ms},
				{value: "a", version: "1", began: 5 * ms, end: 6 * ms},
			}, false},
			{"two winners", []call{
				{write: true, prev: "0", value: "a", version: "1", began: 1 * ms, end: 2 * ms},
				{write: true, prev: "1", value: "b", version: "2", began: 3 * ms, end: 6 * ms},
				{write: true, prev: "1", value: "c", version: "3", began: 3 * ms, end: 6 * ms},
			}, false},
			{"refused for no reason", []call{
				{write: true, prev: "0", value: "a", version: "1", began: 1 * ms, end: 2 * ms},
				{write: true, prev: "1", value: "b", err: driver.ErrConflict, began: 3 * ms, end: 4 * ms},
				{value: "a", version: "1", began: 5 * ms, end: 6 * ms},
			}, false},
			{"late landing", []call{
				{write: true, prev: "0", value: "a", err: context.DeadlineExceeded, began: 1 * ms, end: 2 * ms},
				{value: "", version: "0", began: 3 * ms, end: 4 * ms},
				{value: "a", version: "1", began: 5 * ms, end: 6 * ms},
			}, true},
			{"an acknowledged write is lost", []call{
				{write: true, prev: "0", value: "a", version: "1", began: 1 * ms, end: 2 * ms},
				{value: "", version: "0", began: 3 * ms, end: 4 * ms},
			}, false},
		}},
		{"reads may show earlier states", Rules{Stale: true}, slices.Concat(begin, []call{
			{write: true, prev: "1", value: "b", version: "2", began: 3 * ms, end: 4 * ms},
		}), []history{
			{"a stale read", []call{
				{value: "a", version: "1", began: 5 * ms, end: 6 * ms},
				{value: "b", version: "2", began: 7 * ms, end: 8 * ms},
			}, true},
			{"two winners", []call{
				{write: true, prev: "1", value: "c", version: "3", began: 3 * ms, end: 6 * ms},
				{value: "c", version: "3", began: 7 * ms, end: 8 * ms},
			}, false},
			{"an acknowledged write is lost", []call{
				{value: "a", version: "1", began: 5 * ms, end: 6 * ms},
			}, false},
		}},
		{"a new era refuses the versions of the former one", Rules{Era: EraAtTheEnd}, []call{
			{version: "0 x"},
			{write: true, prev: "0 x", value: "a", version: "1 x", began: 1 * ms, end: 2 * ms},
		}, []history{
			{"refused in the new era", []call{
				{write: true, prev: "1 x", value: "b", err: driver.ErrConflict, began: 3 * ms, end: 4 * ms},
				{value: "a", version: "1 y", began: 5 * ms, end: 6 * ms},
			}, true},
			{"refused before it", []call{
				{write: true, prev: "1 x", value: "b", err: driver.ErrConflict, began: 3 * ms, end: 4 * ms},
				{value: "a", version: "1 x", began: 5 * ms, end: 6 * ms},
				{value: "a", version: "1 y", began: 7 * ms, end: 8 * ms},
			}, false},
		}},
		{"a read may show a write that a crash takes back", Rules{Early: true}, slices.Concat(begin, []call{
			{write: true, prev: "1", value: "b", err: lost, began: 3 * ms, end: 9 * ms},
			{value: "b", version: "2", began: 4 * ms, end: 5 * ms},
		}), []history{
			{"a write that was seen is lost", []call{
				{value: "a", version: "1", began: 10 * ms, end: 11 * ms},
			}, true},
			{"and another takes its place", []call{
				{write: true, prev: "1", value: "c", version: "3", began: 10 * ms, end: 11 * ms},
				{value: "c", version: "3", began: 12 * ms, end: 13 * ms},
			}, true},
			{"a write goes on from it, and it is lost", []call{
				{write: true, prev: "2", value: "c", version: "3", began: 6 * ms, end: 7 * ms},
				{value: "a", version: "1", began: 10 * ms, end: 11 * ms},
			}, false},
			{"two writes go on from one", []call{
				{write: true, prev: "2", value: "c", version: "3", began: 6 * ms, end: 7 * ms},
				{write: true, prev: "1", value: "d", version: "4", began: 8 * ms, end: 9 * ms},
				{value: "d", version: "4", began: 10 * ms, end: 11 * ms},
			}, false},
			{"an acknowledged write is lost", []call{
				{value: "", version: "0", began: 10 * ms, end: 11 * ms},
			}, false},
		}},
		// No client may use a version that is older than its value. A newer version belongs to
		// another value.
		{"a version may be older than its value", Rules{Version: func(value string) driver.Version { return driver.Version("of " + value) }}, []call{
			{version: ""},
			{write: true, value: "a", version: "of a", began: 1 * ms, end: 2 * ms},
			{write: true, prev: "of a", value: "b", version: "of b", began: 3 * ms, end: 6 * ms},
		}, []history{
			{"the version is older", []call{
				{value: "b", version: "of a", began: 4 * ms, end: 7 * ms},
				{write: true, prev: "of a", value: "c", err: driver.ErrConflict, began: 8 * ms, end: 9 * ms},
			}, true},
			{"the older version is taken", []call{
				{value: "b", version: "of a", began: 4 * ms, end: 7 * ms},
				{write: true, prev: "of a", value: "c", version: "of c", began: 8 * ms, end: 9 * ms},
			}, false},
			{"the value is older than the read", []call{
				{value: "a", version: "of b", began: 7 * ms, end: 8 * ms},
			}, false},
		}},
	} {
		for _, c := range group.histories {
			t.Run(group.name+": "+c.name, func(t *testing.T) {
				h := New("cell")
				h.calls = slices.Concat(group.before, c.calls)
				h.versions(group.rules)
				if got := h.ordered(group.rules) == porcupine.Ok; got != c.want {
					t.Errorf("accepted: %v, want %v", got, c.want)
				}
				if h.Torn() != 1 && c.calls[0].version == "of a" {
					t.Errorf("%d reads are torn, want 1", h.Torn())
				}
			})
		}
	}
}
