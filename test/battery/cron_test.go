package main

import (
	"testing"

	"github.com/tenure-go/tenure/internal/witness"
)

// TestJudgeTicks: the judge finds runs that overlap, ticks that run twice, and tokens that fall,
// also if a number of a process recurs.
func TestJudgeTicks(t *testing.T) {
	const first, second = "7 2026-11-29T03:00:00Z 1 job\n", "8 2026-11-29T03:00:02Z 1 job\n"
	record := func(what witness.What, root uint32, token uint64, at int64) witness.Record {
		return witness.Record{What: what, Root: root, PID: root, Token: token, At: at, Candidate: 1}
	}
	run := func(root uint32, token uint64, at int64) []witness.Record {
		return []witness.Record{record(witness.Began, root, token, at), record(witness.Act, root, token, at), record(witness.Act, root, token, at+5)}
	}
	for _, c := range []struct {
		why              string
		records          [][]witness.Record
		lines            string
		stale, regressed int
		fails            bool
	}{
		{"ticks follow each other in a term", [][]witness.Record{run(7, 3, 10), run(8, 3, 20)}, first + second, 0, 0, false},
		{"a token falls", [][]witness.Record{run(7, 3, 10), run(8, 2, 20)}, first + second, 0, 1, false},
		{"runs overlap", [][]witness.Record{run(7, 3, 10), run(8, 4, 13)}, first + second, 1, 0, false},
		{"a tick runs twice", [][]witness.Record{run(7, 3, 10), run(8, 4, 20)}, first + "8 2026-11-29T03:00:00Z 2 job\n", 0, 1, false},
		{"the number of a process recurs", [][]witness.Record{run(7, 3, 10), run(7, 3, 20)}, first + "7 2026-11-29T03:00:02Z 1 job\n", 0, 0, false},
		{"a process says nothing", [][]witness.Record{run(7, 3, 10), run(8, 3, 20)}, first, 0, 0, true},
		{"a line is torn", nil, "7 2026", 0, 0, true},
		{"a process began and did nothing", nil, first, 0, 0, false},
	} {
		var all []witness.Record
		for _, r := range c.records {
			all = append(all, r...)
		}
		v, said, err := judgeTicks(all, c.lines, false)
		if v.Stale != c.stale || v.Regressed != c.regressed || (err != nil) != c.fails {
			t.Errorf("%s: %v, %s, %v", c.why, v, said, err)
		}
	}
}
