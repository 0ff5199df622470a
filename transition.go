package tenure

import (
	"context"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/protocol"
)

// transition carries out one change that the machine reports. It runs under the runner's lock:
// contexts of a term end in the same step as the term itself, so a caller that sees a context end
// finds Err not nil. The event is posted first, so that Run waits for it before it returns.
func (m *runner) transition(now clock.Reading, t protocol.Transition) {
	if t.What == protocol.Trouble {
		t.Cause = m.explainTimeout(t.Cause)
		m.trouble = t.Cause
	}
	if kind, ok := kinds[t.What]; ok {
		e := Event{Time: now.Wall, Kind: kind, Term: t.Term, Leader: leaderOf(t.Leader), Cause: t.Cause}
		if kind == EventTrouble || kind == EventAlarm {
			e.Term = m.term.Token()
		}
		m.post(e)
	}
	switch t.What {
	case protocol.Elected:
		m.elected(t.Term)
	case protocol.Leaving:
		m.term.askToFinish(t.Cause)
	case protocol.Lost:
		m.term.end(&lostError{t.Cause})
	case protocol.Released:
		m.term.endResign(t.Cause)
	case protocol.Candidacy, protocol.Withdrawn:
		m.closeTerm(t.What)
	case protocol.NewLeader:
		m.published++
		if t.OtherTerm {
			m.leaderSince = protocol.MomentOf(now.Wall)
		}
		if m.nomination != nil {
			m.nomination.setVacant(m, t.Leader.ID == "")
		}
	case protocol.Asking:
		campaign, within := m.seeker.ctx, m.settings.machine.Renew
		m.calls.start(false, func() { m.requestHandOver(campaign, t, within) })
	case protocol.Refused:
		m.refuse(t.Cause)
	case protocol.Alarm:
		m.meter.alarmed(t.Cause)
	}
}

// kinds maps the changes that become events.
var kinds = map[protocol.What]EventKind{
	protocol.Candidacy: EventCandidate, protocol.Elected: EventElected, protocol.Leaving: EventLeaving,
	protocol.Lost: EventLost, protocol.Released: EventReleased, protocol.NewLeader: EventLeader,
	protocol.Overdue: EventOverdue, protocol.Trouble: EventTrouble, protocol.Refused: EventTrouble,
	protocol.Alarm: EventAlarm, protocol.Asking: EventAsking,
}

func (m *runner) post(e Event) {
	e.Election, e.ID = m.key, m.id
	if m.events.post(m.shared, e) {
		m.meter.dropped()
	}
}

// report posts an event that does not come from the machine. The term may be nil.
func (m *runner) report(kind EventKind, t *Term, cause error) {
	m.post(Event{Time: m.clock.Now().Wall, Kind: kind, Term: t.Token(), Cause: cause})
}

func (m *runner) elected(token uint64) {
	s := m.seeker
	m.term = newTerm(s.ctx, m, token)
	if s.once {
		m.dropSeeker()
	}
	go s.onResult(m.term, nil)
}

// closeTerm closes the term, if one is open. If the member withdrew, it also ends the campaign.
func (m *runner) closeTerm(what protocol.What) {
	if m.term != nil {
		m.term.endResign(nil)
		m.term = nil
	}
	if what == protocol.Withdrawn && m.seeker != nil {
		m.endCampaign(context.Cause(m.seeker.ctx))
	}
}

// refuse ends the campaign because the store denies reading.
func (m *runner) refuse(cause error) {
	m.refused = true
	if m.seeker != nil {
		m.endCampaign(cause)
	}
}

func (m *runner) endCampaign(err error) {
	s := m.seeker
	m.dropSeeker()
	go s.onResult(nil, err)
}

// dropSeeker removes the seeker. It receives no more calls.
func (m *runner) dropSeeker() {
	if m.seeker != nil {
		m.cancels.remove(m.seeker)
		m.seeker = nil
	}
}
