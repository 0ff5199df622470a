package trace

import (
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// Machine is a protocol.Machine, with a record of each call that can change it. Without a Log it
// records nothing, and allocates nothing.
type Machine struct {
	protocol.Machine
	to *recorder // nil: nothing is recorded
}

// New returns an idle machine of an election. The Log may be nil.
func New(cfg *protocol.Config, incarnation, election string, log *Log) Machine {
	if log == nil {
		return Machine{Machine: *protocol.New(cfg, incarnation)}
	}
	r := &recorder{log: log, by: incarnation}
	s := Settings(*cfg)
	r.line(&Line{In: Start, Format: Format, Election: election, Settings: &s})
	return Machine{*protocol.New(r.settings(cfg), incarnation), r}
}

// begin prepares for a call. Random numbers that were drawn outside of it decide nothing.
func (m *Machine) begin() {
	if m.to != nil {
		m.to.draws = nil
	}
}

// Reconfigure is that of protocol.Machine, as are the methods below.
func (m *Machine) Reconfigure(cfg *protocol.Config) {
	if m.to != nil {
		m.begin()
		s := Settings(*cfg)
		m.to.line(&Line{In: Reconfigured, Settings: &s})
		cfg = m.to.settings(cfg)
	}
	m.Machine.Reconfigure(cfg)
}

// Campaign starts a campaign.
func (m *Machine) Campaign(now clock.Reading, delay time.Duration) {
	m.begin()
	m.Machine.Campaign(now, delay)
	if m.to != nil {
		m.to.line((&Line{In: Campaign, Delay: delay}).at(now))
	}
}

// Withdraw ends the campaign.
func (m *Machine) Withdraw(now clock.Reading) {
	m.begin()
	m.Machine.Withdraw(now)
	if m.to != nil {
		m.to.line((&Line{In: Withdraw}).at(now))
	}
}

// Ask asks a leader to leave.
func (m *Machine) Ask(now clock.Reading, why error) {
	m.begin()
	m.Machine.Ask(now, why)
	if m.to != nil {
		m.to.line((&Line{In: Asked, Error: textOf(why)}).at(now))
	}
}

// HandOver asks a leader to hand over.
func (m *Machine) HandOver(now clock.Reading, to, by string) {
	m.begin()
	m.Machine.HandOver(now, to, by)
	if m.to != nil {
		m.to.line((&Line{In: HandOver, To: to, From: by}).at(now))
	}
}

// Finish reports that the work has stopped.
func (m *Machine) Finish(now clock.Reading, successor string, again bool, delay time.Duration) {
	m.begin()
	m.Machine.Finish(now, successor, again, delay)
	if m.to != nil {
		m.to.line((&Line{In: Finish, To: successor, Again: again, Delay: delay}).at(now))
	}
}

// Abandon ends a term whose work panicked.
func (m *Machine) Abandon(now clock.Reading) {
	m.begin()
	m.Machine.Abandon(now)
	if m.to != nil {
		m.to.line((&Line{In: Abandon}).at(now))
	}
}

// Observe sets whether the machine follows while it is idle.
func (m *Machine) Observe(on bool) {
	m.begin()
	m.Machine.Observe(on)
	if m.to != nil {
		m.to.line(&Line{In: Observe, On: on})
	}
}

// Watching sets whether the store pushes changes.
func (m *Machine) Watching(on bool) {
	m.begin()
	m.Machine.Watching(on)
	if m.to != nil {
		m.to.line(&Line{In: Watching, On: on})
	}
}

// Tick says that time has passed.
func (m *Machine) Tick(now clock.Reading) {
	m.begin()
	m.Machine.Tick(now)
	if m.to != nil {
		m.to.line((&Line{In: Tick}).at(now))
	}
}

// ReadDone reports the answer to a read.
func (m *Machine) ReadDone(now clock.Reading, id uint64, c protocol.Cell, out protocol.Outcome, err error) {
	m.begin()
	m.Machine.ReadDone(now, id, c, out, err)
	if m.to != nil {
		m.to.line((&Line{In: Read, Op: id, Cell: cellOf(&c), Outcome: outcomes[out], Error: textOf(err)}).at(now))
	}
}

// WriteDone reports the answer to a write.
func (m *Machine) WriteDone(now clock.Reading, id uint64, v driver.Version, out protocol.Outcome, err error) {
	m.begin()
	m.Machine.WriteDone(now, id, v, out, err)
	if m.to != nil {
		m.to.line((&Line{In: Written, Op: id, Version: v, Outcome: outcomes[out], Error: textOf(err)}).at(now))
	}
}

// Seen reports a pushed cell.
func (m *Machine) Seen(now clock.Reading, c protocol.Cell) {
	m.begin()
	m.Machine.Seen(now, c)
	if m.to != nil {
		m.to.line((&Line{In: Pushed, Cell: cellOf(&c)}).at(now))
	}
}

// Nominate sets whether this member is the nominee.
func (m *Machine) Nominate(now clock.Reading, nominated bool) {
	m.begin()
	m.Machine.Nominate(now, nominated)
	if m.to != nil {
		m.to.line((&Line{In: Nominated, On: nominated}).at(now))
	}
}

// SetEligible sets whether this member is eligible. The runner repeats it at each step: only a
// change is recorded.
func (m *Machine) SetEligible(now clock.Reading, eligible bool) {
	was, phase := m.Eligible(), m.Phase()
	m.begin()
	m.Machine.SetEligible(now, eligible)
	if m.to != nil && (was != eligible || phase != m.Phase()) {
		m.to.line((&Line{In: Eligible, On: eligible}).at(now))
	}
}

// Remaining answers how long this member may act. Work asks often: a question is recorded if it is
// the first since an input of another kind, or ends the term.
func (m *Machine) Remaining(now clock.Reading, term uint64) (time.Duration, error) {
	phase := m.Phase()
	left, err := m.Machine.Remaining(now, term)
	if m.to != nil && (!m.to.asked || phase != m.Phase()) {
		m.begin()
		m.to.line((&Line{In: Question, Term: term, Left: left}).at(now))
	}
	return left, err
}

// Next returns the next actions. It is recorded unless it follows no input and decides nothing.
func (m *Machine) Next(now clock.Reading) protocol.Todo {
	m.begin()
	todo := m.Machine.Next(now)
	if m.to != nil && (m.to.pending || todo.Op != nil || len(todo.Transitions) > 0) {
		recorded := todo // todo itself stays off the heap
		m.to.line(decisions(&recorded).at(now))
	}
	return todo
}
