package witness

import (
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	once := Run{Job: "once", Planned: 100, Attempt: 1, Token: 1, Who: "a"}
	again := once
	again.Job, again.Again = "again", true
	with := func(r Run, change func(*Run)) Run {
		change(&r)
		return r
	}
	type act struct {
		run Run
		at  int64
	}
	next := with(once, func(r *Run) { r.Planned, r.Who = 101, "b" })
	for _, c := range []struct {
		why                           string
		acts                          []act
		excused                       int64
		overlapping, repeated, excuse int
	}{
		{"one run has many acts, in any order", []act{{once, 7}, {once, 5}, {once, 9}}, 0, 0, 0, 0},
		{"runs follow each other", []act{{once, 5}, {once, 9}, {next, 10}}, 0, 0, 0, 0},
		{"an act at the first act of the next run", []act{{once, 5}, {once, 10}, {next, 10}}, 0, 1, 0, 0},
		{"jobs are independent", []act{{once, 5}, {again, 6}, {once, 9}}, 0, 0, 0, 0},
		{"a long run overlaps with each that begins meanwhile",
			[]act{{once, 5}, {next, 6}, {with(next, func(r *Run) { r.Planned = 102 }), 8}, {once, 9}}, 0, 2, 0, 0},
		{"a tick runs twice", []act{{once, 5}, {with(once, func(r *Run) { r.Who, r.Attempt = "b", 2 }), 7}}, 0, 0, 1, 0},
		{"one process runs a tick twice", []act{{once, 5}, {with(once, func(r *Run) { r.Number = 1 }), 7}}, 0, 0, 1, 0},
		{"a restore that no process noticed excuses it", []act{{once, 5}, {with(once, func(r *Run) { r.Who = "b" }), 7}}, 100, 0, 0, 1},
		{"and not that of a later tick", []act{{once, 5}, {with(once, func(r *Run) { r.Who = "b" }), 7}}, 99, 0, 1, 0},
		{"a lost tick runs again", []act{{again, 5}, {with(again, func(r *Run) { r.Attempt = 2 }), 7}}, 0, 0, 0, 0},
		{"an attempt runs twice", []act{{again, 5}, {with(again, func(r *Run) { r.Who = "b" }), 7}}, 0, 0, 1, 0},
		{"an earlier attempt comes back", []act{{with(again, func(r *Run) { r.Attempt = 2 }), 5}, {again, 7}}, 0, 0, 1, 0},
	} {
		var b Ticks
		b.Excuse(c.excused)
		for _, a := range c.acts {
			b.Add(a.run, a.at)
		}
		v := b.Judge()
		if v.Overlapping != c.overlapping || v.Repeated != c.repeated || v.Excused != c.excuse {
			t.Errorf("%s: %v", c.why, v)
		}
		if v.Safe() != (c.overlapping+c.repeated == 0) || v.Safe() != !strings.Contains(v.String(), "first ") {
			t.Errorf("%s: safe %t, %v", c.why, v.Safe(), v)
		}
	}
	var b Ticks
	b.Add(once, 5)
	if b.Begun("once", 4) != 1 || b.Begun("once", 5) != 0 || b.Begun("again", 0) != 0 {
		t.Error("the number of runs after a moment is wrong")
	}
}
