package tenure

import (
	"fmt"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// waitError is the cause of an EventWaiting.
type waitError struct {
	is   error
	text string
}

func (e *waitError) Error() string { return e.text }
func (e *waitError) Unwrap() error { return e.is }

// waits has the cause of the event for each reason to wait. A timed wait ends by itself.
var waits = map[protocol.Wait]struct {
	cause waitError
	timed bool
}{
	protocol.WaitVacant: {waitError{ErrVacant, "no record shows which candidate led last: " +
		"candidates wait one lease, since a leader whose record was deleted may still trust its lease"}, true},
	protocol.WaitMalformed: {waitError{ErrMalformed,
		"the record is malformed: candidates wait for the lease that it shows or may hide, and then claim over it"}, true},
	protocol.WaitForeign: {waitError{ErrForeign,
		"the key holds bytes of another program: no candidate overwrites them, so nobody leads until an operator removes them"}, false},
	protocol.WaitUnproven: {waitError{ErrUnproven, "later records may be missing from the store, " +
		"as after a restore or a failover: candidates wait one lease, since another leader may still trust its lease"}, true},
	protocol.WaitSameID: {waitError{ErrSameID, "the record names the ID of this candidate: " +
		"an earlier run of it, or another process with the same ID, may still trust its lease"}, true},
	protocol.WaitNamesake: {waitError{ErrSameID, "the leader has the ID of this candidate: " +
		"give each its own, since logs and hand-overs cannot tell them apart"}, false},
	protocol.WaitOtherLease: {waitError{ErrOtherLease, "the leader has another lease than this candidate"}, false},
	protocol.WaitIneligible: {waitError{ErrIneligible,
		"nobody leads, and this candidate is not eligible: it claims nothing until it is"}, false},
	protocol.WaitNomineeOnly: {waitError{ErrNotNominee,
		"nobody leads, and this candidate is not the nominee: with NomineeOnly it claims nothing until it is"}, false},
}

// noteWait posts an event if this candidate has begun to wait, or waits for another reason.
func (m *runner) noteWait(now clock.Reading) {
	why, certain := m.machine.Wait(now)
	if !certain || why == m.waits {
		return
	}
	m.waits = why
	w, ok := waits[why]
	if !ok {
		return
	}
	if h := driver.AbilitiesOf(m.store).PristineHinter; h != nil && why == protocol.WaitVacant && h.PristineHint() != "" {
		w.cause.text += "; " + h.PristineHint()
	}
	if why == protocol.WaitOtherLease {
		w.cause.text = m.otherLease()
	}
	e := Event{Time: now.Wall, Kind: EventWaiting, Cause: &w.cause}
	if w.timed {
		e.Until = now.Wall.Add(m.machine.StandsFor(now))
	}
	m.post(e)
}

// otherLease explains the wait for a leader whose lease is not that of this candidate.
func (m *runner) otherLease() string {
	c, _ := m.machine.InView()
	own := m.settings.machine.Lease
	return fmt.Sprintf("the leader %s has a lease of %v, and this candidate one of %v: "+
		"if the leader dies, this candidate takes over only after the longer one, %v; give all candidates of an election the same lease",
		c.Record.LeaderID, c.Record.Lease, own, max(c.Record.Lease, own))
}
