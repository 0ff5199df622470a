package tenuretest

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
)

// Elect makes the candidate of this ID the leader and returns once it leads. As soon as the
// candidate follows the election, Elect asks the present leader to hand over to it; that leader may
// finish its work first. A candidate that leads already, and was asked to finish, also finishes
// first and is then elected again.
func (s *Stage) Elect(id string) {
	s.t.Helper()
	c := s.candidate(id)
	s.waitUntil(fmt.Sprintf("%q is not elected", id), func(now tenure.Leader) bool {
		asked := now.Term == s.askedTerm
		if now.Exists() && now.ID != id && !asked && c.follows() {
			_ = s.askOnce(now, id) // waitUntil tries again
		}
		return now.ID == id && !asked
	})
}

// Ask waits until a candidate of the test leads, and asks it to finish its work and hand over to
// the rival: the soft context ends, and the hard one stays open. Ask returns when the request is in
// the store; Await(Rival) waits until the work has finished and the rival leads.
func (s *Stage) Ask() {
	s.t.Helper()
	now, ok := s.awaitTestLeader()
	if !ok {
		return
	}
	s.rival.seekLeadership()
	if err := s.askOnce(now, Rival); err != nil {
		s.t.Fatalf("tenuretest: %v", err)
	}
}

// askOnce asks a leader to hand over, and records its term, so that it is asked once.
func (s *Stage) askOnce(now tenure.Leader, to string) error {
	err := s.rival.handOver(to)
	if err == nil {
		s.askedTerm = now.Term
	}
	return err
}

// Fence waits until a candidate of the test leads, and then ends its term. The candidate sees the
// same as if its process had been suspended until its lease expired and the rival was elected. When
// Fence returns, Term.Err wraps tenure.ErrExpired, both contexts have ended, and the rival leads
// with a higher token. It stops the test if the leader does not use the Clock of Config.
func (s *Stage) Fence() {
	s.t.Helper()
	fenced, ok := s.awaitTestLeader()
	if !ok {
		return
	}
	c := s.candidate(fenced.ID)
	if !c.clock.wasRead() {
		s.t.Fatalf("tenuretest: %q does not use the clock of Config(%q), so its lease does not end at once", fenced.ID, fenced.ID)
		return
	}
	defer c.suspend()()
	var expired time.Time
	s.waitUntil("the rival is not elected", func(now tenure.Leader) bool {
		s.rival.seekLeadership()
		switch {
		case now.Term == fenced.Term:
			expired = s.rival.expireLease(fenced, expired)
		case now.Exists() && now.ID != Rival && now.Term != s.askedTerm:
			_ = s.askOnce(now, Rival) // it claimed what the fenced leader released
		}
		return now.ID == Rival
	})
}

// Cut separates a candidate from the store without an error: its calls hang until they time out. If
// it leads, its lease expires. Then another candidate that campaigns is elected; the rival does not
// campaign.
func (s *Stage) Cut(id string) {
	s.t.Helper()
	s.candidate(id).store.Partition()
}

// Heal undoes Cut. Calls that already hang still time out.
func (s *Stage) Heal(id string) {
	s.t.Helper()
	s.candidate(id).store.Heal()
}

// Await waits until the candidate of this ID leads, or, if the ID is empty, until there is no
// leader. It does nothing to bring that about.
func (s *Stage) Await(id string) {
	s.t.Helper()
	s.waitUntil(fmt.Sprintf("%q does not lead", id), func(now tenure.Leader) bool { return now.ID == id })
}

// awaitTestLeader waits until a candidate of the test leads, and returns that leader; false if none
// does.
func (s *Stage) awaitTestLeader() (l tenure.Leader, ok bool) {
	s.t.Helper()
	ok = s.waitUntil("no candidate of the test's leads", func(now tenure.Leader) bool {
		l = now
		return now.Exists() && now.ID != Rival
	})
	return l, ok
}
