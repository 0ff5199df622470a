package ticks

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

const testLease = 15 * time.Second

// stage has one cell, and plays one member. Time is at, by the wall clock.
type stage struct {
	t         *testing.T
	job       *Job
	now       time.Time
	cell      driver.Entry
	live      Live
	n         int
	disturbed time.Time
	events    []Event
}

// hourly is a schedule of full hours.
func hourly(after time.Time) time.Time { return after.Truncate(time.Hour).Add(time.Hour) }

func newStage(t *testing.T, change func(*Policy)) *stage {
	s := &stage{t: t, now: at("01:30:00"), live: Live{Remaining: testLease}}
	s.join(change)
	return s
}

// join replaces the process by a new one, which remembers nothing.
func (s *stage) join(change func(*Policy)) {
	p := Policy{Plan: "hourly", Next: hourly, Window: time.Hour, ClockOffset: 10 * time.Second, Nonce: func() string {
		s.n++
		return fmt.Sprint("n", s.n)
	}}
	if change != nil {
		change(&p)
	}
	s.job = New(p)
}

func (s *stage) lead(token uint64, lead string) {
	s.job.Begin(s.now, Term{Token: token, ID: "m", Lead: lead})
}

func (s *stage) facts() Facts {
	return Facts{Now: s.now, Live: s.live, Lease: testLease, Disturbed: s.disturbed}
}

func (s *stage) decide() ([]byte, error) { return s.job.Decide(s.cell, s.facts()) }

func (s *stage) write(value []byte) {
	s.cell.Value, s.cell.Version = value, driver.Version(fmt.Sprint(s.cell.Version, "+"))
}

func (s *stage) settle(err error) Result {
	r := s.job.Settle(s.now, err)
	s.events = append(s.events, r.Events...)
	return r
}

// pass reads and writes until nothing follows at once. It returns whether a tick is confirmed.
func (s *stage) pass() bool {
	for range 5 {
		value, err := s.decide()
		if err == nil {
			s.write(value)
		}
		if r := s.settle(err); r.Start || !r.Again {
			return r.Start
		}
	}
	s.t.Fatal("it reads again and again")
	return false
}

// at sets the time, wakes the job as often as its caller does, and passes if it is due. It starts a
// tick that is confirmed, and returns it.
func (s *stage) at(clock string) string {
	for until := at(clock); s.now.Before(until); s.now = s.now.Add(min(LookEvery, until.Sub(s.now))) {
		s.job.Wake(s.now)
	}
	if next := s.job.Wake(s.now); next.IsZero() || s.now.Before(next) || !s.pass() {
		return ""
	}
	t, ok := s.job.Start(s.now, s.live)
	if !ok {
		return "refused"
	}
	return fmt.Sprintf("%s attempt %d", t.Planned.Format(time.TimeOnly), t.Attempt)
}

func (s *stage) end(clock string) {
	s.at(clock)
	s.job.End(s.now, false, 0, "")
}

// expect plays a time, and compares the tick that starts.
func (s *stage) expect(clock, want string) {
	s.t.Helper()
	if got := s.at(clock); got != want {
		s.t.Errorf("at %s: %q starts, want %q; events %v, state %s", clock, got, want, s.events, s.cell.Value)
	}
}

func (s *stage) state() *State {
	s.t.Helper()
	state, err := Decode(s.cell.Value)
	if err != nil {
		s.t.Fatal(err)
	}
	return &state
}

// leading returns a stage in which one tick has run.
func leading(t *testing.T, change func(*Policy)) *stage {
	s := newStage(t, change)
	s.lead(7, "l7")
	s.expect("01:30:00", "")
	s.expect("02:00:00", "02:00:00 attempt 1")
	s.end("02:01:00")
	s.expect("02:01:01", "")
	if got := s.state().Ticks; len(got) != 1 || got[0].State != Finished {
		t.Fatalf("the ticks are %v", got)
	}
	s.events = nil
	return s
}

func TestFirstUse(t *testing.T) {
	s := newStage(t, nil)
	s.now = at("01:59:30")
	s.lead(7, "l7")
	s.expect("01:59:30", "") // another leader may have run ticks until one lease later
	s.expect("02:00:00", "")
	s.expect("03:00:00", "03:00:00 attempt 1")
	if len(s.events) != 1 || s.events[0].Kind != EventHistory {
		t.Errorf("the events are %v", s.events)
	}
}

func TestOnlyLeadersWrite(t *testing.T) {
	s := leading(t, nil)
	s.now, s.live.Lost = at("03:00:00"), true
	if _, err := s.decide(); !errors.Is(err, ErrNotLeading) {
		t.Errorf("after its term: %v", err)
	}
	s.cell.Value = []byte("bytes of another program")
	s.live.Lost = false
	if _, err := s.decide(); !errors.Is(err, ErrForeign) {
		t.Errorf("over foreign bytes: %v", err)
	}
}

// TestUnknownOutcome: a record of unknown outcome starts nothing until a read shows it.
func TestUnknownOutcome(t *testing.T) {
	s := leading(t, nil)
	s.now = at("03:00:00")
	value, err := s.decide()
	if err != nil {
		t.Fatal(err)
	}
	if r := s.settle(errors.New("no answer")); r.Start {
		t.Error("it starts without an answer")
	}
	if _, ok := s.job.Start(s.now, s.live); ok {
		t.Error("it starts though nothing is confirmed")
	}
	s.write(value) // it was applied
	s.expect("03:00:01", "03:00:00 attempt 1")
}

func TestStaleReadConfirmsNothingTwice(t *testing.T) {
	s := leading(t, nil)
	s.now = at("03:00:00")
	value, _ := s.decide()
	s.settle(errors.New("no answer"))
	s.write(value)
	shown := s.cell
	if !s.pass() {
		t.Fatal("a read does not confirm the start")
	}
	s.live.Asked = true
	if _, ok := s.job.Start(s.now, s.live); ok {
		t.Fatal("it starts though it was asked to finish")
	}
	s.live.Asked, s.cell = false, shown
	_, err := s.decide()
	if r := s.settle(cmpErr(err, driver.ErrConflict)); r.Start {
		t.Error("a stale read starts the tick")
	}
}

// cmpErr returns err, or the outcome of the write if there is one.
func cmpErr(err, outcome error) error {
	if err == nil {
		return outcome
	}
	return err
}

// TestStartIsTakenBack: a start that was recorded and did not happen is no lost run (J2, J3).
func TestStartIsTakenBack(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := leading(t, func(p *Policy) { p.AtLeastOnce = again; p.Needs = 5 * time.Second })
		s.now = at("03:00:00")
		if !s.pass() {
			t.Fatal("no tick is confirmed")
		}
		s.live.Asked = true
		if _, ok := s.job.Start(s.now, s.live); ok {
			t.Fatal("it starts though it was asked to finish")
		}
		s.expect("03:00:01", "")
		if got := s.state(); len(got.Ticks) != 1 {
			t.Errorf("the ticks are %v", got.Ticks)
		}
		s.live.Asked = false
		s.join(nil)
		s.lead(8, "l8")
		s.expect("03:00:05", "03:00:00 attempt 1")
	}
}

// TestTooLittleTime: no tick starts, nor is recorded, while too little of the lease is left (J2).
func TestTooLittleTime(t *testing.T) {
	s := leading(t, func(p *Policy) { p.Needs = 5 * time.Second })
	s.now = at("03:00:00")
	if !s.pass() {
		t.Fatal("no tick is confirmed")
	}
	s.live.Remaining = 4 * time.Second
	if _, ok := s.job.Start(s.now, s.live); ok {
		t.Fatal("it starts")
	}
	if s.job.Settled() {
		t.Error("the record of the start may stay")
	}
	s.expect("03:00:01", "")
	if !s.job.Settled() || s.state().find(at("03:00:00")) != nil {
		t.Errorf("the start is not taken back: %s", s.cell.Value)
	}
	s.live.Remaining = testLease
	s.expect("03:00:03", "03:00:00 attempt 1")
}

// TestAskedStartsNothing shows J3: a leader that is asked to finish after the record was confirmed.
func TestAskedStartsNothing(t *testing.T) {
	s := leading(t, nil)
	s.now = at("03:00:00")
	if !s.pass() {
		t.Fatal("no tick is confirmed")
	}
	s.live.Asked = true
	if _, ok := s.job.Start(s.now, s.live); ok {
		t.Error("it starts")
	}
}

// TestOneRunAtATime shows J8: a pass during a run starts nothing.
func TestOneRunAtATime(t *testing.T) {
	s := leading(t, nil)
	s.expect("03:00:00", "03:00:00 attempt 1")
	s.now = at("04:00:00")
	if s.pass() {
		t.Error("another tick is confirmed during the run")
	}
}

// TestLostRun shows J4: what the next leader does with a run whose end is not recorded.
func TestLostRun(t *testing.T) {
	for _, c := range []struct {
		reason string
		again  bool
		when   string
		want   string
	}{
		{"at most once", false, "03:00:40", ""},
		{"at least once", true, "03:00:40", "03:00:00 attempt 2"},
		{"at least once, beyond the window", true, "04:00:30", "04:00:00 attempt 1"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			change := func(p *Policy) { p.AtLeastOnce = c.again }
			s := leading(t, change)
			s.expect("03:00:00", "03:00:00 attempt 1")
			s.join(change)
			s.now = at(c.when)
			s.lead(8, "l8")
			s.expect(c.when, c.want)
			if lost := s.state().find(at("03:00:00")).State == Lost; lost == (c.want == "03:00:00 attempt 2") {
				t.Errorf("the state is %s", s.cell.Value)
			}
		})
	}
}

// TestTokensMayFall: after a restore another term can have the token of the term that started a
// tick.
func TestTokensMayFall(t *testing.T) {
	s := leading(t, nil)
	s.expect("03:00:00", "03:00:00 attempt 1")
	s.join(nil)
	s.lead(7, "another l7")
	s.expect("03:00:30", "")
	if got := s.state().find(at("03:00:00")); got == nil || got.State != Lost {
		t.Errorf("the state is %s", s.cell.Value)
	}
}

// TestRepeatedDraft: the first write of a job arrives again after the key was deleted.
func TestRepeatedDraft(t *testing.T) {
	s := newStage(t, nil)
	s.lead(7, "l7")
	draft, err := s.decide()
	if err != nil {
		t.Fatal(err)
	}
	s.write(draft)
	s.settle(nil)
	s.expect("01:30:00", "")
	s.expect("02:00:00", "02:00:00 attempt 1")
	s.join(nil)
	s.write(draft)
	s.lead(8, "l8")
	s.expect("02:00:20", "")
	s.expect("03:00:00", "03:00:00 attempt 1")
}

// TestHistory shows J5: after each sign of a changed history, no tick runs that is planned within
// one lease and two offsets of two clocks. The next one runs.
func TestHistory(t *testing.T) {
	const now = "02:59:30"    // the next tick is planned within the time that J5 skips
	older := func(s *stage) { // the state after first use
		state := s.state()
		state.Seq, state.Ticks, state.After, state.Nonce = 2, nil, at("01:30:00"), "n2"
		s.put(state)
	}
	for _, c := range []struct {
		reason string
		again  bool // the same process leads in another term
		change func(s *stage)
		says   string
	}{
		{"the key was deleted", true, func(s *stage) { s.cell.Value = nil }, "no state"},
		{"the store has another era", true, func(s *stage) { s.cell.Era = 9 }, "recreated"},
		{"a new process finds a state of another era", false, func(s *stage) { s.cell.Era = 9 }, "recreated"},
		{"the store marks the state", false, func(s *stage) { s.cell.Unproven = true }, "may be missing"},
		{"an older state is back", true, older, "older state"},
		{"another state with the same number", true, func(s *stage) {
			state := s.state()
			state.Nonce = "other"
			s.put(state)
		}, "older state"},
		{"a state of a later term", false, func(s *stage) {
			state := s.state()
			state.Token = 99
			s.put(state)
		}, "later term"},
		{"the election noticed it", false, func(s *stage) { s.disturbed = at(now) }, "election noticed"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := leading(t, nil)
			s.at(now)
			if !c.again {
				s.join(nil)
			}
			c.change(s)
			s.lead(8, "l8")
			s.expect(now, "")
			if len(s.events) == 0 || !strings.Contains(s.events[0].Reason, c.says) {
				t.Errorf("the events are %v", s.events)
			}
			if got := s.state(); !got.Over.Equal(at("03:00:05")) {
				t.Errorf("no tick starts until %v", got.Over)
			}
			s.cell.Unproven = false
			s.expect("03:00:30", "")
			s.expect("04:00:00", "04:00:00 attempt 1")
		})
	}
	t.Run("another state replaced that of this term", func(t *testing.T) {
		s := leading(t, nil)
		s.at(now)
		state := s.state()
		state.Seq, state.Nonce, state.Ticks, state.After = state.Seq+5, "other", nil, at("01:30:00")
		s.put(state)
		s.expect("03:00:00", "")
	})
}

func (s *stage) put(state *State) {
	value, err := state.encode()
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(value)
}

// TestStaleRead: a read that shows an older state looks like a restored store. Its write conflicts,
// and nothing follows.
func TestStaleRead(t *testing.T) {
	s := leading(t, nil)
	present, old := s.cell, s.state()
	old.Seq, old.Nonce, old.Ticks = 2, "n2", nil
	s.put(old)
	s.now = at("03:00:00")
	_, err := s.decide()
	if r := s.settle(cmpErr(err, driver.ErrConflict)); !r.Again || len(r.Events) > 0 {
		t.Errorf("after a conflict: %+v", r)
	}
	s.cell = present
	s.expect("03:00:00", "03:00:00 attempt 1")
}

// TestClockSetBack: the clock goes back between the record and the start.
func TestClockSetBack(t *testing.T) {
	s := leading(t, nil)
	s.now = at("03:00:00")
	if !s.pass() {
		t.Fatal("no tick is confirmed")
	}
	s.now = at("02:59:55")
	if _, ok := s.job.Start(s.now, s.live); ok {
		t.Error("it starts before it is due")
	}
	s.expect("02:59:56", "")
	s.expect("03:00:00", "03:00:00 attempt 1")
}

// TestClockSetForward: no leader waited for the ticks over which the clock jumps (J7).
func TestClockSetForward(t *testing.T) {
	s := leading(t, func(p *Policy) { p.CatchUp = CatchUpNone })
	s.now = at("03:30:00")
	s.expect("03:30:00", "")
	if len(s.events) != 1 || s.events[0].Kind != EventMissed {
		t.Errorf("the events are %v", s.events)
	}
	s.expect("04:00:00", "04:00:00 attempt 1")
}

// TestFastClock: a leader whose clock is an hour fast consumes only the tick that it started.
func TestFastClock(t *testing.T) {
	s := leading(t, nil)
	s.join(nil)
	s.now = at("05:00:00") // true: 02:30
	s.lead(8, "l8")
	s.expect("05:00:00", "05:00:00 attempt 1")
	s.end("05:00:10")
	s.expect("05:00:11", "")
	s.join(nil)
	s.now, s.events = at("02:31:00"), nil
	s.lead(9, "l9")
	s.expect("02:31:00", "")
	if len(s.events) != 1 || s.events[0].Kind != EventClock {
		t.Errorf("the events are %v", s.events)
	}
	s.expect("03:00:00", "03:00:00 attempt 1")
	s.end("03:00:10")
	s.expect("04:00:00", "04:00:00 attempt 1")
	s.end("04:00:10")
	s.expect("05:00:00", "")
	s.expect("06:00:00", "06:00:00 attempt 1")
}

// TestTickDuringAWrite: a tick that comes due between a read and the answer to its write runs.
func TestTickDuringAWrite(t *testing.T) {
	s := leading(t, nil)
	s.job.Begin(at("02:59:59"), Term{Token: 7, ID: "m", Lead: "l7"})
	s.now = at("02:59:59")
	_, err := s.decide()
	s.now = at("03:00:01")
	s.settle(cmpErr(err, nil))
	s.expect("03:00:01", "03:00:00 attempt 1")
}

func TestNewPlan(t *testing.T) {
	s := leading(t, nil)
	s.join(func(p *Policy) {
		p.Plan, p.CatchUp = "every 10 min", CatchUpAll
		p.Next = func(after time.Time) time.Time { return after.Truncate(10 * time.Minute).Add(10 * time.Minute) }
	})
	s.now = at("02:35:00")
	s.lead(8, "l8")
	s.expect("02:35:00", "")
	s.expect("02:40:00", "02:40:00 attempt 1")
}

// TestEndAfterTheTerm: a run ended well, and the term was over before that was recorded. The next
// term of the same process records it.
func TestEndAfterTheTerm(t *testing.T) {
	s := leading(t, func(p *Policy) { p.AtLeastOnce = true })
	s.expect("03:00:00", "03:00:00 attempt 1")
	s.end("03:00:10")
	s.lead(8, "l8")
	s.expect("03:00:40", "")
	if got := s.state().find(at("03:00:00")); got.State != Finished {
		t.Errorf("the tick is %v", got)
	}
}
