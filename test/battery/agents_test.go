package main

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/witness"
)

// act is one of a worker of an agent.
func act(token uint64, candidate uint32, at int64) witness.Record {
	return witness.Record{What: witness.Act, Token: token, Candidate: candidate, PID: candidate, Root: candidate, At: at}
}

// TestReignsOfAgents: the first act with a new token begins a reign, and a late act does not.
func TestReignsOfAgents(t *testing.T) {
	w := &watch{onlyActs: true}
	got := fmt.Sprintf("%+v", w.reignsIn([]witness.Record{act(3, 1, 10), act(3, 1, 20), act(5, 2, 30), act(3, 1, 40)}))
	got += fmt.Sprintf("%+v", w.reignsIn([]witness.Record{act(5, 2, 50)}))
	want := fmt.Sprintf("%+v", []reign{{token: 3, candidate: 1, root: 1, began: 10, number: 1}, {token: 5, candidate: 2, root: 2, began: 30, number: 2}})
	if got != want+"[]" {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestJudgeAgents: a worker that asked in time, and was suspended before its act, made no mistake.
// One that asked too late did.
func TestJudgeAgents(t *testing.T) {
	s := bareStage(t)
	s.row.agent = true
	for _, c := range []struct {
		at    int64
		stale int
	}{{15, 0}, {25, 1}} {
		v, err := s.judge([]witness.Record{act(3, 1, 10), act(5, 2, 20), act(3, 1, c.at)})
		if err != nil || v.Stale != c.stale {
			t.Errorf("asked at %d: %v, %v", c.at, v, err)
		}
	}
}
