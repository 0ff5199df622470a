package tenure

import (
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/nomination"
)

// nominee is the subscription to the Nominator while this member takes part.
type nominee struct {
	nominator nomination.Nominator
	gate      nomination.Gate // nil: only the Nominator's nomination counts
	// ineligible is the last value of SetEligible, negated, where there is a gate.
	ineligible bool
	// serial is the number of the present subscription. Calls of see for an earlier one are
	// ignored.
	serial uint64
	active bool
	// busy: a goroutine calls the Nominator, one call after the other. So stop is always called
	// before the next Nominate, and a call that blocks delays only this goroutine.
	busy       bool
	stop       func() // ends the subscription with the number stopSerial
	stopSerial uint64
	// vacant: there is no leader; sentVacant is the value that the Nominator has received.
	vacant, sentVacant bool
}

func newNominee(by nomination.Nominator) *nominee {
	n := &nominee{nominator: by}
	n.gate, _ = by.(nomination.Gate)
	return n
}

// applyGate passes the gate's present answer to the machine. It runs under the runner's lock.
func (n *nominee) applyGate(m *runner, now clock.Reading) {
	if n.gate != nil {
		m.machine.SetEligible(now, !n.ineligible && n.gate.MayLead())
	}
}

// setActive begins or ends the subscription. It runs under the runner's lock, so the Nominator is
// called elsewhere.
func (n *nominee) setActive(m *runner, on bool) {
	if on == n.active {
		return
	}
	n.active = on
	n.serial++
	if !on {
		m.machine.Nominate(m.clock.Now(), false)
	}
	n.wake(m)
}

// setVacant is called, also under the lock, when the leader changes or there is none.
func (n *nominee) setVacant(m *runner, vacant bool) {
	n.vacant = vacant
	if n.active {
		n.wake(m)
	}
}

func (n *nominee) wake(m *runner) {
	if !n.busy {
		n.busy = true
		go n.notify(m)
	}
}

// notify calls the Nominator until the present subscription is the only one.
func (n *nominee) notify(m *runner) {
	for call := n.next(m); call != nil; call = n.next(m) {
		call()
	}
}

// next returns the next call of the Nominator, or nil.
func (n *nominee) next(m *runner) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	stop, serial := n.stop, n.serial
	switch {
	case stop != nil && !(n.active && n.stopSerial == serial):
		n.stop = nil
		return stop
	case stop == nil && n.active:
		return func() { n.begin(m, serial) }
	case n.active && n.sentVacant != n.vacant:
		n.sentVacant = n.vacant
		return vacancyCall(n.nominator, n.vacant)
	}
	n.busy = false
	return nil
}

func (n *nominee) begin(m *runner, serial uint64) {
	stop := n.nominator.Nominate(func(nominated bool) {
		m.step(func(now clock.Reading) {
			if n.active && n.serial == serial {
				m.machine.Nominate(now, nominated)
			}
		})
	})
	if stop == nil {
		stop = func() {} // a Nominator with nothing to stop
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n.stop, n.stopSerial, n.sentVacant = stop, serial, false
}

// vacancyCall returns the call that notifies a VacancyListener, if by is one.
func vacancyCall(by nomination.Nominator, vacant bool) func() {
	return func() {
		if a, ok := by.(nomination.VacancyListener); ok {
			a.Vacant(vacant)
		}
	}
}

// competes reports whether this member campaigns or leads.
func (m *runner) competes() bool { return m.machine.Phase() != protocol.Idle }

// SetEligible sets whether this candidate is fit to lead, for example by the result of its health
// check. A candidate is eligible until SetEligible(false) is called. Call it at any time. A
// candidate that is not eligible
//
//   - goes on campaigning, but claims nothing. If a hand-over names it as the successor, the others
//     still wait for its head start to end before they claim;
//   - asks no leader to hand over because of its Priority or nomination, until two leases after it
//     is eligible again;
//   - is asked to finish if it leads, with ErrIneligible. The lease is renewed until its work has
//     finished, and then released, as in any hand-over. A claim that was already sent is withdrawn.
//
// If no candidate is eligible, nobody leads. If the Nominator is a nomination.Gate, it must also
// allow this candidate to lead.
func (e *Election) SetEligible(eligible bool) {
	m := &e.runner
	m.step(func(now clock.Reading) {
		if n := m.nominee; n != nil && n.gate != nil {
			n.ineligible = !eligible
			eligible = eligible && n.gate.MayLead()
		}
		m.machine.SetEligible(now, eligible)
	})
}
