package tenure

import (
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// nomination is the Nominator's news, while this member takes part.
type nomination struct {
	from driver.Nominator
	gate driver.Gate // nil: this member may lead whatever its Nominator says
	// unfit is the last value of SetEligible, negated, where there is a gate.
	unfit bool
	// serial numbers the present subscription. News for an earlier one is ignored.
	serial uint64
	on     bool
	// busy: a goroutine calls the Nominator, one call after the other. So a stop never comes after
	// the Nominate that follows it, and a call that blocks delays only this goroutine.
	busy bool
	stop func() // of the wish of that number, which the Nominator knows of
	of   uint64
	// vacant: nobody leads; told is the value that the Nominator has received.
	vacant, told bool
}

func newNomination(from driver.Nominator) *nomination {
	n := &nomination{from: from}
	n.gate, _ = from.(driver.Gate)
	return n
}

// admit passes the gate's present answer to the machine. It runs under the runner's lock.
func (n *nomination) admit(m *runner, now Reading) {
	if n.gate != nil {
		m.machine.Stand(now, !n.unfit && n.gate.MayLead())
	}
}

// want begins or ends listening. It runs under the runner's lock, so the Nominator is called
// elsewhere.
func (n *nomination) want(m *runner, on bool) {
	if on == n.on {
		return
	}
	n.on = on
	n.serial++
	if !on {
		m.machine.Nominate(m.clock.Now(), false)
	}
	n.rouse(m)
}

// leads is called, also under the lock, when another leads, or nobody.
func (n *nomination) leads(m *runner, vacant bool) {
	n.vacant = vacant
	if n.on {
		n.rouse(m)
	}
}

func (n *nomination) rouse(m *runner) {
	if !n.busy {
		n.busy = true
		go n.settle(m)
	}
}

// settle calls the Nominator until it knows the present subscription and no other.
func (n *nomination) settle(m *runner) {
	for call := n.next(m); call != nil; call = n.next(m) {
		call()
	}
}

// next returns the next call of the Nominator, or nil.
func (n *nomination) next(m *runner) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	stop, serial := n.stop, n.serial
	switch {
	case stop != nil && !(n.on && n.of == serial):
		n.stop = nil
		return stop
	case stop == nil && n.on:
		return func() { n.begin(m, serial) }
	case n.on && n.told != n.vacant:
		n.told = n.vacant
		return tell(n.from, n.vacant)
	}
	n.busy = false
	return nil
}

func (n *nomination) begin(m *runner, serial uint64) {
	stop := n.from.Nominate(func(nominated bool) {
		m.step(func(now Reading) {
			if n.on && n.serial == serial {
				m.machine.Nominate(now, nominated)
			}
		})
	})
	if stop == nil {
		stop = func() {} // a Nominator with nothing to stop
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n.stop, n.of, n.told = stop, serial, false
}

// tell is for the Nominators that need to know whether nobody leads.
func tell(from driver.Nominator, vacant bool) func() {
	return func() {
		if a, ok := from.(driver.VacancyListener); ok {
			a.Vacant(vacant)
		}
	}
}

// competes reports whether this member campaigns or leads.
func (m *runner) competes() bool { return m.machine.Phase() != protocol.Idle }
