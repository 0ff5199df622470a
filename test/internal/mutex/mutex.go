// Package mutex checks journals of the witness against two models with which Jepsen tests locks:
// its fenced mutex and its reentrant fenced mutex, as models of porcupine. They judge in another
// way than the witness does, so that one can show a fault of the other.
//
// A hold is all that one process does with one token. The process acquires it between its beginning
// and its first act, and releases it at any time after its last act. These things differ from
// Jepsen's tests, because an election promises something else:
//
//   - A process that was killed has released its hold at some time, because a lease expires. In
//     Jepsen's models, a client without an answer may keep the lock without end.
//   - An election is not reentrant: a candidate that leads is not elected again. In the reentrant
//     model, the process that tenure started and each of its descendants acquire the hold of that
//     process, without a limit of their number.
//   - A release names its fence. A client of Jepsen does one call after the other, and here one
//     process could use two tokens at once.
//   - No model asks that a lock is free again after a fault. The battery asks for the next leader.
package mutex

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/tenure-go/tenure/internal/witness"
)

// owner is a process that tenure started.
type owner struct{ candidate, root uint32 }

// step is the input of a model: an owner acquires or releases.
type step struct {
	acquire bool
	by      owner
	fence   uint64
}

// lock is the state of a model.
type lock struct {
	by    owner // of the last acquisition, as is fence
	holds int   // 0: it is free
	fence uint64
}

// model returns a mutex whose fences grow.
func model(reentrant bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lock{} },
		Step: func(state, input, _ any) (bool, any) {
			l, s := state.(lock), input.(step)
			same := l.holds > 0 && s.by == l.by && s.fence == l.fence
			switch {
			case s.acquire && l.holds == 0:
				return s.fence > l.fence, lock{s.by, 1, s.fence}
			case s.acquire:
				return reentrant && same, lock{l.by, l.holds + 1, l.fence}
			default:
				return same, lock{l.by, l.holds - 1, l.fence}
			}
		},
	}
}

// Place returns where an act stands among all others.
type Place func(index int, r witness.Record) int64

// ByTime places acts by their stamps.
func ByTime(_ int, r witness.Record) int64 { return r.At }

// ByOrder places acts in the order in which a resource would have received them.
func ByOrder(index int, _ witness.Record) int64 { return int64(index) }

// Faults returns the models that do not explain the journal of one election.
func Faults(records []witness.Record, place Place) (faults []string) {
	for name, reentrant := range map[string]bool{"fenced mutex": false, "reentrant fenced mutex": true} {
		if !porcupine.CheckOperations(model(reentrant), operations(records, place, reentrant)) {
			faults = append(faults, fmt.Sprintf("Jepsen's %s does not explain the journal", name))
		}
	}
	slices.Sort(faults)
	return faults
}

// hold has the places of the acts of one process, or of all descendants of one, with one token.
type hold struct {
	by    owner
	token uint64
	pid   uint32 // 0: all
}

type span struct{ began, first, last int64 }

// operations returns the acquisition and the release of each hold.
func operations(records []witness.Record, place Place, reentrant bool) []porcupine.Operation {
	spans := map[hold]*span{}
	began := map[hold]int64{}
	for i, r := range records {
		h, at := hold{by: owner{r.Candidate, r.Root}, token: r.Token}, place(i, r)
		if reentrant {
			h.pid = r.PID
		}
		switch {
		case r.What == witness.Began:
			began[h] = at
		case r.What != witness.Act: // says nothing of a hold
		case spans[h] == nil:
			spans[h] = &span{at, at, at}
		default:
			spans[h].first, spans[h].last = min(spans[h].first, at), max(spans[h].last, at)
		}
	}
	var all []porcupine.Operation
	for h, s := range spans {
		s.began = s.first
		if at, ok := began[h]; ok {
			s.began = min(at, s.first)
		}
		all = append(all,
			porcupine.Operation{Input: step{true, h.by, h.token}, Call: s.began, Return: s.first},
			porcupine.Operation{Input: step{false, h.by, h.token}, Call: s.last, Return: math.MaxInt64})
	}
	return all
}
