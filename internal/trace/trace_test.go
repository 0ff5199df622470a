package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/trace"
	"github.com/tenure-go/tenure/internal/trace/rules"
)

// member is a candidate of a short election over a register, whose requests take no time.
type member struct {
	trace.Machine
	wake    time.Duration
	working uint64
}

// stage is the register, and the time.
type stage struct {
	now     time.Duration
	cell    protocol.Cell
	writes  int
	members []*member
}

func (s *stage) reading() clock.Reading {
	at := time.Hour + s.now
	return clock.Reading{Instant: clock.Instant{Mono: at, Raw: at, Boot: at}, Wall: time.Unix(0, 0).Add(at)}
}

// do gives a member one input, and carries out its decisions.
func (s *stage) do(m *member, input func(now clock.Reading)) {
	for {
		input(s.reading())
		todo := m.Next(s.reading())
		m.wake = s.now + todo.Wake
		for _, t := range todo.Transitions {
			switch t.What {
			case protocol.Elected:
				m.working = t.Term
			case protocol.Lost:
				m.working = 0
			}
		}
		op := todo.Op
		if op == nil {
			return
		}
		input = func(now clock.Reading) { s.serve(m, op, now) }
	}
}

func (s *stage) serve(m *member, op *protocol.Op, now clock.Reading) {
	switch {
	case !op.Write:
		m.ReadDone(now, op.ID, s.cell, protocol.Applied, nil)
	case op.Prev != s.cell.Version:
		m.WriteDone(now, op.ID, "", protocol.Conflict, nil)
	default:
		s.writes++
		s.cell = protocol.Cell{Kind: protocol.Valid, Version: driver.Version(fmt.Sprint(s.writes)), Floor: uint64(s.writes), Record: op.Record}
		m.WriteDone(now, op.ID, s.cell.Version, protocol.Applied, nil)
	}
}

// election returns the trace of each of two members: one leads, asks whether it may act, hands
// over, and waits for the other, which stops.
func election(t testing.TB) map[string]string {
	t.Helper()
	s := &stage{cell: protocol.Cell{Version: "new", Pristine: true}}
	texts, logs := map[string]*bytes.Buffer{}, []*trace.Log{}
	random := uint64(0)
	for _, name := range []string{"a", "b"} {
		cfg := &protocol.Config{
			ID: name, Lease: 9 * time.Second, Renew: 3 * time.Second, Poll: 3 * time.Second, PollStable: 9 * time.Second,
			FinishWithin: time.Second, HeadStart: time.Second, Rand: func() uint64 { random++; return random * 0x9e3779b97f4a7c15 },
		}
		cfg.Promise(0.01, 100*time.Millisecond, 0)
		texts[name] = &bytes.Buffer{}
		log := trace.NewLog(texts[name], 1<<20)
		logs = append(logs, log)
		m := &member{Machine: trace.New(cfg, name+"1", "election", log)}
		s.members = append(s.members, m)
		s.do(m, func(now clock.Reading) { m.Campaign(now, 0) })
	}
	a, b := s.members[0], s.members[1]
	s.pass(10*time.Second, a, b)
	s.do(a, func(now clock.Reading) { _, _ = a.Remaining(now, a.working) })
	s.do(a, func(now clock.Reading) { a.HandOver(now, "b", "operator") })
	s.do(a, func(now clock.Reading) { a.Finish(now, "", true, 0); a.working = 0 })
	s.pass(20*time.Second, a, b)
	if b.working == 0 {
		t.Fatal("b does not lead")
	}
	s.pass(20*time.Second, a) // b is stopped
	if a.working == 0 {
		t.Fatal("a does not lead again")
	}
	out := map[string]string{}
	for i, name := range []string{"a", "b"} {
		logs[i].Flush(time.Hour)
		out[name] = texts[name].String()
	}
	return out
}

// pass lets time pass for some members.
func (s *stage) pass(d time.Duration, members ...*member) {
	for end := s.now + d; s.now < end; s.now += 100 * time.Millisecond {
		for _, m := range members {
			if s.now >= m.wake {
				s.do(m, m.Tick)
			}
		}
	}
}

func replay(text string) error {
	lines, err := trace.Parse(strings.NewReader(text))
	if err != nil {
		return err
	}
	return trace.Replay(lines)
}

func check(texts map[string]string) error {
	files := map[string][]byte{}
	for name, text := range texts {
		files[name] = []byte(text)
	}
	return rules.Check(files, 0)
}

// TestElection: an honest trace replays and keeps the rules, also if its last line is not whole.
func TestElection(t *testing.T) {
	texts := election(t)
	for _, cut := range []int{0, 7} {
		for name, text := range texts {
			texts[name] = text[:len(text)-cut]
			if err := replay(texts[name]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := check(texts); err != nil {
			t.Error(err)
		}
	}
}

// object is a line as a person edits it.
type object = map[string]any

// number returns a number of a line.
func number(in any) float64 { n, _ := in.(float64); return n }

func record(l object, of string) object {
	in, _ := l[of].(object)
	r, _ := in["record"].(object)
	return r
}

func changed(l object, what string) bool {
	list, _ := l["changes"].([]any)
	for _, c := range list {
		if c.(object)["what"] == what {
			return true
		}
	}
	return false
}

func shift(l object, by time.Duration) {
	at, _ := l["at"].([]any)
	for i := range at {
		at[i] = number(at[i]) + float64(by)
	}
	if wall, err := time.Parse(time.RFC3339Nano, fmt.Sprint(l["wall"])); err == nil {
		l["wall"] = wall.Add(by)
	}
}

// TestFalsified: a trace that was edited by hand is refused by the rule that it then breaks. Edits
// of decisions are also refused by the replay.
func TestFalsified(t *testing.T) {
	for _, c := range []struct {
		name, file, rule string
		inputs           bool // only inputs were edited: the replay need not refuse them
		edit             func(lines []object) []object
	}{
		{name: "an answer beyond the deadline", file: "a", rule: "L1", edit: each(func(l object) {
			if l["in"] == "question" {
				l["left"] = 60e9
			}
		})},
		{name: "a leader that goes on without renewals", file: "b", rule: "L1", edit: func(lines []object) []object {
			late := false
			for _, l := range lines {
				late = late || number(record(l, "send")["seq"]) > 1
				if late {
					shift(l, 30*time.Second)
				}
			}
			return lines
		}},
		{name: "a claim before the lease is over", file: "a", rule: "L2", edit: each(func(l object) {
			r := record(l, "send")
			if r["seq"] == 1.0 && number(r["term"]) > 2 {
				shift(l, -8*time.Second)
			}
		})},
		{name: "a term that is elected again", file: "a", rule: "L4", edit: func(lines []object) []object {
			var again object
			for i, l := range lines {
				if changed(l, "elected") && again == nil {
					again = l
				}
				if l["in"] == "finish" {
					return append(append(lines[:i+1:i+1], again), lines[i+1:]...)
				}
			}
			return lines
		}},
		{name: "a term that no claim won", file: "a", rule: "L7", edit: func(lines []object) (kept []object) {
			for _, l := range lines {
				if l["in"] != "written" {
					kept = append(kept, l)
				}
			}
			return kept
		}},
		{name: "a release while the work runs", file: "a", rule: "L9", edit: func(lines []object) (kept []object) {
			for _, l := range lines {
				if l["in"] != "finish" {
					kept = append(kept, l)
				}
			}
			return kept
		}},
		{name: "a token that does not grow", file: "b", rule: "L10", edit: each(func(l object) {
			if r := record(l, "send"); r["seq"] == 1.0 {
				r["term"] = 1.0
			}
		})},
		{name: "one version replaced twice", file: "b", rule: "compare-and-swap", edit: each(func(l object) {
			if send, ok := l["send"].(object); ok && record(l, "send")["seq"] == 1.0 {
				send["prev"] = "1" // which the other member replaced
			}
		})},
		{name: "two leaders by the wall clocks", file: "b", rule: "P1", inputs: true, edit: each(func(l object) {
			if wall, err := time.Parse(time.RFC3339Nano, fmt.Sprint(l["wall"])); err == nil {
				l["wall"] = wall.Add(-8 * time.Second)
			}
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			texts := election(t)
			edited := maps.Clone(texts)
			edited[c.file] = rewrite(t, texts[c.file], c.edit)
			err := check(edited)
			var f *rules.Fault
			if !errors.As(err, &f) || f.Rule != c.rule {
				t.Errorf("the rules say %v, and %s is broken", err, c.rule)
			}
			if err := replay(edited[c.file]); err == nil && !c.inputs {
				t.Error("the replay finds no difference")
			}
		})
	}
}

func each(edit func(object)) func([]object) []object {
	return func(lines []object) []object {
		for _, l := range lines {
			edit(l)
		}
		return lines
	}
}

func rewrite(t *testing.T, text string, edit func([]object) []object) string {
	t.Helper()
	var lines []object
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var l object
		err := d.Decode(&l)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	var out bytes.Buffer
	for _, l := range edit(lines) {
		if err := json.NewEncoder(&out).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestUnread: a trace of another format, and one without its beginning, are refused.
func TestUnread(t *testing.T) {
	for _, text := range []string{"{\"in\":\"start\",\"by\":\"a\",\"format\":99}\n", "{\"in\":\"tick\",\"by\":\"a\"}\n", "tick\n"} {
		if replay(text) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestNothingIsRecorded: without a Log, a machine allocates nothing.
func TestNothingIsRecorded(t *testing.T) {
	m := trace.New(&protocol.Config{Lease: time.Second}, "a1", "election", nil)
	now := clock.Reading{}
	m.Observe(true)
	m.Next(now) // a read, which is never answered
	if n := testing.AllocsPerRun(100, func() {
		m.Nominate(now, true)
		m.SetEligible(now, true)
		_, _ = m.Remaining(now, 1)
		m.Next(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// full is a file without space.
type full struct{ writes int }

func (f *full) Write([]byte) (int, error) { f.writes++; return 0, errors.New("no space") }

// TestBounds: a trace ends at the first error of its file, and with a last line of its own when too
// much waits.
func TestBounds(t *testing.T) {
	f := &full{}
	log := trace.NewLog(f, 1<<20)
	m := trace.New(&protocol.Config{Rand: func() uint64 { return 1 }}, "a1", "election", log)
	log.Flush(time.Hour)
	m.Tick(clock.Reading{})
	log.Flush(time.Hour)
	if f.writes != 1 {
		t.Errorf("%d writes to a file without space", f.writes)
	}
	var text bytes.Buffer
	log = trace.NewLog(&text, 10)
	m = trace.New(&protocol.Config{Rand: func() uint64 { return 1 }}, "a1", "election", log)
	m.Tick(clock.Reading{})
	log.Flush(time.Hour)
	if text.String() != "{\"in\":\"cut\",\"by\":\"a1\"}\n" {
		t.Errorf("the trace is %q", &text)
	}
	if err := replay(text.String()); err != nil {
		t.Error(err)
	}
}
