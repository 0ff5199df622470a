package main

import (
	"testing"

	"github.com/tenure-go/tenure/internal/witness"
)

// TestJudge: what must be caught is caught, and by what.
func TestJudge(t *testing.T) {
	act := func(at int64, token uint64, candidate, root uint32) witness.Record {
		return witness.Record{At: at, Token: token, Candidate: candidate, Root: root, PID: root, What: witness.Act}
	}
	child := func(r witness.Record) witness.Record {
		r.PID++
		return r
	}
	for _, c := range []struct {
		name, why        string
		records          []witness.Record
		stale, regressed int
	}{
		{"in turn", "one after the other", []witness.Record{act(1, 1, 1, 10), act(2, 1, 1, 10), act(3, 2, 2, 20), act(4, 3, 1, 11)}, 0, 0},
		{"interleaved", "c1 acts on after c2 has begun", []witness.Record{act(1, 1, 1, 10), act(3, 2, 2, 20), act(5, 1, 1, 10), act(6, 2, 2, 20)}, 1, 0},
		{"interleaved by time alone", "c1 is stamped after c2 has begun, and entered before",
			[]witness.Record{act(1, 1, 1, 10), act(5, 1, 1, 10), act(3, 2, 2, 20)}, 1, 0},
		{"interleaved by place alone", "c1 was held up after its stamp, and did it all the same",
			[]witness.Record{act(1, 1, 1, 10), act(3, 2, 2, 20), act(2, 1, 1, 10)}, 1, 0},
		{"a child outlives", "what c1's worker has started acts on", []witness.Record{act(1, 1, 1, 10), act(2, 2, 2, 20), child(act(3, 1, 1, 10))}, 1, 0},
		{"children", "of several processes of one worker none is stale, in whatever order they enter",
			[]witness.Record{act(1, 1, 1, 10), child(act(4, 1, 1, 10)), act(3, 1, 1, 10), act(5, 2, 2, 20)}, 0, 0},
		{"a lower token", "a resource would refuse the new leader", []witness.Record{act(1, 2, 1, 10), act(2, 1, 2, 20)}, 0, 1},
		{"a token twice", "a resource could not tell them apart", []witness.Record{act(1, 2, 1, 10), act(2, 2, 2, 20)}, 0, 1},
		{"a second run in one term", "likewise, though it is the same candidate", []witness.Record{act(1, 2, 1, 10), act(2, 2, 1, 11)}, 0, 1},
		{"nothing", "there is nothing to judge", nil, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judge(c.records)
			if got.stale() != c.stale || got.regressed() != c.regressed || got.safe() != (c.stale+c.regressed == 0) {
				t.Errorf("%+v: want %d stale, %d regressed: %s", got, c.stale, c.regressed, c.why)
			}
		})
	}
}
