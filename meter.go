package tenure

import (
	"context"
	"errors"
	"runtime"
	"time"
	"weak"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/metrics"
)

// meter records the metrics of one election. A nil one records nothing. Its methods run under the
// runner's lock.
type meter struct {
	*metrics.Member
	highest       uint64        // the highest term that this process knows
	term          uint64        // the latest term of this candidate
	confirmed     clock.Instant // when the last confirmed write of that term was sent
	deadline      time.Duration // that follows from it, on the Mono clock
	sawNoLeader   bool          // this process took part and saw no leader
	recordedUntil time.Duration // on the Mono clock: up to then the time is recorded
}

// newMeter adds an election to the Set for as long as it is reachable.
func newMeter(e *Election, set *metrics.Set) *meter {
	alive := weak.Make(e)
	m := set.Add(e.Name(), func() (metrics.State, bool) {
		if e := alive.Value(); e != nil {
			return e.runner.measure(), true
		}
		return metrics.State{}, false
	})
	runtime.AddCleanup(e, set.Remove, m)
	return &meter{Member: m}
}

// measure returns the state that Gather reads.
func (m *runner) measure() metrics.State {
	m.step(nil) // so that it is of this moment
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{State: m.state(), Failures: m.machine.Failures(), WriteErr: m.rights.missing()}
	if m.refused {
		s.Err = m.machine.Cause()
	}
	lease, usable := m.settings.machine.Lease, m.settings.machine.Budget
	return metrics.State{
		Role: m.role(s.State), Term: m.meter.highest, Lease: lease, Margin: lease - usable,
		Overdue: s.State == StateOverdue || s.State == StateEnded, Unhealthy: s.Health() != nil,
	}
}

func (m *runner) role(s State) metrics.Role {
	switch {
	case s == StateLeader || s == StateLeaving:
		return metrics.Leading
	case s == StateIdle && m.observers == 0:
		return metrics.Idle
	case m.machine.Leader().ID == "":
		return metrics.Leaderless
	}
	return metrics.Following
}

// follow records what the last step changed: a renewal, and the time without a leader.
func (t *meter) follow(m *runner, now clock.Reading) {
	if t == nil {
		return
	}
	t.highest = max(t.highest, m.machine.Term(), m.machine.Leader().Term)
	if term, sent := m.machine.Term(), m.machine.LastConfirmed(); term != t.term || sent != t.confirmed {
		if term == t.term {
			left := t.deadline - now.Mono
			t.Renewed(float64(left) / float64(m.settings.machine.Budget))
		}
		left, _ := m.machine.Remaining(now, term)
		t.term, t.confirmed, t.deadline = term, sent, now.Mono+left
	}
	if t.sawNoLeader {
		t.Leaderless(now.Mono - t.recordedUntil)
	}
	t.sawNoLeader, t.recordedUntil = m.role(m.state()) == metrics.Leaderless, now.Mono
}

// called records a call of the store.
func (t *meter) called(op metrics.Operation, err error, took time.Duration) {
	if t != nil {
		t.Called(op, outcomeOf(err), took)
	}
}

func outcomeOf(err error) metrics.Outcome {
	switch outcome(err) {
	case protocol.Applied:
		return metrics.OK
	case protocol.Conflict:
		return metrics.Conflict
	case protocol.Denied:
		return metrics.Denied
	}
	switch {
	case errors.Is(err, driver.ErrPoolBusy):
		return metrics.PoolBusy
	case errors.Is(err, driver.ErrConnecting):
		return metrics.Connecting
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return metrics.Timeout
	}
	return metrics.Failed
}

// ended records the end of a term. Asked is why its work was asked to finish, or nil.
func (t *meter) ended(cause, asked error) {
	if t == nil {
		return
	}
	switch {
	case errors.Is(cause, ErrReleased) && errors.Is(asked, ErrHandOver):
		t.Ended(metrics.HandedOver)
	case errors.Is(cause, ErrReleased):
		t.Ended(metrics.Released)
	case errors.Is(cause, ErrExpired):
		t.Ended(metrics.Expired)
	case errors.Is(cause, ErrOverdue), errors.Is(cause, ErrAbandoned):
		t.Ended(metrics.Overrun)
	default:
		t.Ended(metrics.Deposed)
	}
}

// alarmed records an alarm.
func (t *meter) alarmed(cause error) {
	if t == nil {
		return
	}
	switch ReasonOf(cause) {
	case "deleted", "recreated", "regressed":
		t.Alarmed(metrics.BadHistory)
	default:
		t.Alarmed(metrics.BadRecord)
	}
}

// dropped records an event that was dropped.
func (t *meter) dropped() {
	if t != nil {
		t.Dropped()
	}
}
