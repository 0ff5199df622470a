package tenuretest

import (
	"fmt"

	"github.com/tenure-go/tenure"
)

// Elect makes the candidate of this ID the leader and returns once it leads. As soon as the
// candidate follows the election, Elect asks the present leader to hand over to it; that leader may
// finish its work first. A candidate that leads already, and was asked to finish, also finishes
// first and is then elected again.
func (s *Stage) Elect(id string) {
	s.t.Helper()
	seat := s.seat(id)
	s.until(fmt.Sprintf("%q is not elected", id), func(now tenure.Leader) bool {
		asked := now.Term == s.asked
		if now.Exists() && now.ID != id && !asked && seat.follows() {
			_ = s.ask(now, id) // another attempt comes
		}
		return now.ID == id && !asked
	})
}

// Ask waits until a candidate of the test leads, and asks it to finish its work and hand over to
// the rival: the soft context ends, and the hard one stays open. Ask returns when the request is in
// the store; Await(Rival) waits until the work has finished and the rival leads.
func (s *Stage) Ask() {
	s.t.Helper()
	now, ok := s.leading()
	if !ok {
		return
	}
	s.rival.stand()
	if err := s.ask(now, Rival); err != nil {
		s.t.Fatalf("tenuretest: %v", err)
	}
}

// ask asks a leader, once for each term.
func (s *Stage) ask(now tenure.Leader, to string) error {
	err := s.rival.ask(to)
	if err == nil {
		s.asked = now.Term
	}
	return err
}

// Fence waits until a candidate of the test leads, and takes its term away as if its process had
// been suspended until its lease was over and the rival was elected. When Fence returns, Term.Err
// wraps tenure.ErrExpired, both contexts have ended, and the rival leads with a higher token. It
// stops the test if the leader does not use the Clock of Config.
func (s *Stage) Fence() {
	s.t.Helper()
	fenced, ok := s.leading()
	if !ok {
		return
	}
	seat := s.seat(fenced.ID)
	if !seat.clock.used() {
		s.t.Fatalf("tenuretest: %q does not use the clock of Config(%q), so its lease does not end at once", fenced.ID, fenced.ID)
		return
	}
	defer seat.suspend()()
	s.until("the rival is not elected", func(now tenure.Leader) bool {
		if now.Exists() && now.Term != fenced.Term {
			return true
		}
		// Nobody holds a valid lease, so the rival may believe that time has passed. If a renewal
		// was under way, it must believe so once more.
		s.rival.stand()
		s.rival.clock.leap()
		return false
	})
}

// Cut separates a candidate from the store without an error: its calls hang until they time out. If
// it leads, its lease expires. Then another candidate that campaigns is elected; the rival does not
// campaign.
func (s *Stage) Cut(id string) {
	s.t.Helper()
	s.seat(id).line.Partition()
}

// Heal undoes Cut. Calls that hang by then still time out.
func (s *Stage) Heal(id string) {
	s.t.Helper()
	s.seat(id).line.Heal()
}

// Await waits until the candidate of this ID leads, or, if the ID is empty, until there is no
// leader. It does nothing to bring that about.
func (s *Stage) Await(id string) {
	s.t.Helper()
	s.until(fmt.Sprintf("%q does not lead", id), func(now tenure.Leader) bool { return now.ID == id })
}

// leading waits until one of the test's candidates leads, and returns it; false if none does.
func (s *Stage) leading() (l tenure.Leader, ok bool) {
	s.t.Helper()
	ok = s.until("no candidate of the test's leads", func(now tenure.Leader) bool {
		l = now
		return now.Exists() && now.ID != Rival
	})
	return l, ok
}
