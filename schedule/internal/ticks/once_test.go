package ticks

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// asks makes the stage a new process with an invocation for an hourly tick.
func (s *stage) asks(start string, change func(*Policy)) {
	s.join(func(p *Policy) {
		p.Plan, p.Once, p.Window = "on request", &Invocation{Period: time.Hour, Start: at(start)}, 30*time.Minute
		if change != nil {
			change(p)
		}
	})
}

// asked is a stage in which a tick of 02:00 has run on m, after the first use of the job.
func asked(t *testing.T) *stage {
	s := newStage(t, nil)
	s.asks("01:30:00", nil)
	s.lead(1, "l1")
	s.expect("01:30:00", "")
	s.says("the job is new, or its state was deleted")
	s.run("02:00:00", 2, "l2", "02:00:00 attempt 1")
	s.end("02:01:00")
	s.expect("02:01:01", "")
	s.says("finished")
	return s
}

// run plays a new process, which was started at an instant and leads at once.
func (s *stage) run(start string, token uint64, lead, want string) {
	s.t.Helper()
	s.asks(start, nil)
	s.starts(start, token, lead, want)
}

func (s *stage) starts(now string, token uint64, lead, want string) {
	s.t.Helper()
	if s.now.Before(at(now)) {
		s.now = at(now)
	}
	s.lead(token, lead)
	s.expect(s.now.Format(time.TimeOnly), want)
}

// says checks the verdict: the state of the tick, or a part of the reason; "" if there is none yet.
func (s *stage) says(want string) {
	s.t.Helper()
	got := ""
	if v := s.job.Verdict(); v != nil {
		got = string(v.Tick.State) + v.Reason
	}
	if got != want && (want == "" || !strings.Contains(got, want)) {
		s.t.Errorf("the verdict is %q, want %q; state %s", got, want, s.cell.Value)
	}
}

// TestOnceFirstUse: there is no verdict before the state is sound, so that the next tick runs.
func TestOnceFirstUse(t *testing.T) {
	s := newStage(t, nil)
	s.asks("01:30:00", nil)
	s.lead(1, "l1")
	for _, want := range []string{"", "the job is new, or its state was deleted"} {
		value, err := s.decide()
		if err != nil {
			t.Fatal(err)
		}
		s.write(value)
		s.settle(nil)
		s.says(want)
	}
	if s.state().Draft || !s.job.Settled() {
		t.Errorf("the state is %s", s.cell.Value)
	}
}

func TestOnceRunsOnce(t *testing.T) {
	s := asked(t)
	for start, want := range map[string]string{
		"02:00:03": "finished", // its clock is ahead
		"01:59:58": "finished", // or behind
		"02:29:59": "finished",
		"01:30:01": "finished",
	} {
		s.run(start, 3, "l3"+start, "")
		if s.says(want); s.job.Verdict().Tick.ID != "m" || !s.job.Settled() {
			t.Errorf("%s: the verdict is %+v", start, s.job.Verdict())
		}
	}
	s.run("03:00:00", 4, "l4", "03:00:00 attempt 1")
	s.says("")
	s.job.End(s.now, true, 3, "exit status 3")
	s.expect("03:00:00", "")
	s.says("failed")
	s.run("03:00:01", 5, "l5", "")
	if s.says("failed"); s.job.Verdict().Tick.Code != 3 {
		t.Errorf("the verdict is %+v", s.job.Verdict())
	}
}

// TestOnceOutOfOrder: a tick does not start after a later one, or too late.
func TestOnceOutOfOrder(t *testing.T) {
	s := asked(t)
	s.asks("02:40:00", nil)
	s.run("03:20:00", 3, "l3", "03:20:00 attempt 1")
	s.end("03:21:00")
	s.expect("03:21:00", "")
	s.run("02:40:00", 4, "l4", "")
	s.says("a later tick was started already, at 2026-11-28T03:20:00Z by the clock of m")
	s.asks("04:00:00", nil)
	s.starts("04:30:01", 5, "l5", "")
	s.says("more than 30m0s late")
}

func TestOnceByName(t *testing.T) {
	s := asked(t)
	named := func(name string) func(*Policy) {
		return func(p *Policy) { p.Once.Name, p.Once.Period = name, 0 }
	}
	play := func(start, now, name, want string) {
		t.Helper()
		s.asks(start, named(name))
		s.starts(now, 3, "l"+now+name, want)
		if s.job.Running() {
			s.job.End(s.now, false, 0, "")
			s.expect(s.now.Format(time.TimeOnly), "")
		}
		s.says("finished")
	}
	play("03:00:00", "03:00:00", "b", "03:00:00 attempt 1")
	play("03:00:00", "03:00:00", "b", "")
	play("03:00:00", "03:00:01", "d", "03:00:00 attempt 1") // a nanosecond later
	play("03:05:00", "03:05:00", "b", "")
	play("03:05:00", "03:05:00", "a", "03:05:00 attempt 1")
	play("03:04:00", "03:06:00", "c", "03:05:00 attempt 1") // behind the others
	play("03:04:00", "03:06:00", "a", "")
	if n := len(s.state().Ticks); n != 5 {
		t.Errorf("the state is %s", s.cell.Value)
	}
}

func TestOnceInterrupted(t *testing.T) {
	for _, again := range []bool{false, true} {
		policy := func(p *Policy) { p.AtLeastOnce = again }
		s := asked(t)
		s.run("03:00:00", 3, "l3", "03:00:00 attempt 1") // it dies
		s.asks("03:00:02", policy)
		want := map[bool]string{true: "03:00:00 attempt 2"}[again]
		s.starts("03:00:20", 4, "l4", want)
		if !again {
			s.says("lost")
			s.run("03:00:30", 5, "l5", "")
			s.says("lost")
			s.asks("03:00:31", func(p *Policy) { p.AtLeastOnce = true })
			s.starts("03:00:31", 6, "l6", "03:00:00 attempt 2")
			continue
		}
		s.says("")
		s.end("03:01:00")
		s.expect("03:01:00", "")
		s.says("finished")
	}
}

// TestOnceLeavesOthersAlone: the run of an earlier tick was lost. Only its own invocations repeat
// it, and they do so after a later tick, too.
func TestOnceLeavesOthersAlone(t *testing.T) {
	again := func(p *Policy) { p.AtLeastOnce, p.Window = true, 3*time.Hour }
	s := asked(t)
	s.asks("03:00:00", again)
	s.starts("03:00:00", 3, "l3", "03:00:00 attempt 1")
	s.asks("04:00:00", again)
	s.starts("04:00:00", 4, "l4", "04:00:00 attempt 1")
	s.end("04:01:00")
	s.expect("04:01:00", "")
	s.says("finished")
	if got := s.state().Ticks[1].State; got != Lost {
		t.Errorf("the earlier tick is %s", got)
	}
	s.asks("03:00:01", again)
	s.starts("04:01:01", 5, "l5", "03:00:00 attempt 2")
}

// TestOnceAfterAChange: lost records keep a tick from starting, unless it may run twice.
func TestOnceAfterAChange(t *testing.T) {
	for why, change := range map[string]func(s *stage){
		"deleted":      func(s *stage) { s.cell = driver.Entry{} },
		"recreated":    func(s *stage) { s.cell.Era++ },
		"unproven":     func(s *stage) { s.cell.Unproven = true },
		"later token":  func(s *stage) { state := s.state(); state.Token = 99; s.put(state) },
		"as the draft": func(s *stage) { state := s.state(); state.Draft = true; s.put(state) },
		"noticed":      func(s *stage) { s.disturbed = at("02:59:55") },
	} {
		for _, again := range []bool{false, true} {
			s := asked(t)
			change(s)
			s.asks("03:00:00", func(p *Policy) { p.AtLeastOnce = again })
			s.starts("03:00:00", 5, "l5", map[bool]string{true: "03:00:00 attempt 1"}[again])
			if s.cell.Unproven = false; !again {
				s.says("nothing that was started until 2026-11-28T03:00:3")
				s.run("03:00:40", 6, "l6", "03:00:40 attempt 1")
				continue
			}
			s.end("03:01:00")
			s.expect("03:01:00", "")
			if s.says("finished"); s.state().Draft {
				t.Errorf("%s: a draft stays", why)
			}
		}
	}
}

// TestOnceUnknownOutcome: the answer to a write is lost. The next read shows whether it is there.
func TestOnceUnknownOutcome(t *testing.T) {
	for _, lands := range []bool{false, true} {
		s := asked(t)
		s.asks("03:00:00", nil)
		s.now = at("03:00:00")
		s.lead(3, "l3")
		value, err := s.decide()
		if err != nil {
			t.Fatal(err)
		}
		if lands {
			s.write(value)
		}
		if r := s.settle(errNoAnswer); r.Start {
			t.Fatal("a start of unknown outcome")
		}
		s.says("")
		s.expect("03:00:00", "03:00:00 attempt 1")
	}
}

// TestOnceNeverLeavesAStart: a start of unknown outcome is written over before the verdict.
func TestOnceNeverLeavesAStart(t *testing.T) {
	s := asked(t)
	s.asks("03:00:00", nil)
	s.now = at("03:00:00")
	s.lead(3, "l3")
	if _, err := s.decide(); err != nil {
		t.Fatal(err)
	}
	s.settle(errNoAnswer)
	before := s.cell.Version
	s.expect("03:45:00", "")
	if s.says("late"); s.cell.Version == before || !s.job.Settled() {
		t.Error("the write may still land")
	}
}

// TestOnceClockSetBack: no tick starts before the instant at which it was asked for.
func TestOnceClockSetBack(t *testing.T) {
	s := asked(t)
	s.asks("03:00:00", nil)
	s.now = at("02:59:50")
	s.lead(3, "l3")
	s.expect("02:59:50", "")
	s.says("")
	s.expect("03:00:00", "03:00:00 attempt 1")
}

// TestOnceFastClock: a machine whose clock is two hours fast runs one tick. The others skip their
// present one and raise an alarm, and then go on.
func TestOnceFastClock(t *testing.T) {
	s := asked(t)
	s.run("05:00:00", 3, "l3", "05:00:00 attempt 1")
	s.end("05:01:00")
	s.expect("05:01:00", "")
	s.now = at("03:00:05")
	s.run("03:00:05", 4, "l4", "")
	if s.says("a later tick was started already, at 2026-11-28T05:00:00Z"); len(s.events) == 0 || s.events[len(s.events)-1].Kind != EventClock {
		t.Errorf("the events are %v", s.events)
	}
	s.run("04:00:00", 5, "l5", "04:00:00 attempt 1")
}

var errNoAnswer = errors.New("no answer")
