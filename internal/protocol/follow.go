package protocol

import (
	"time"

	"github.com/tenure-go/tenure/internal/clock"
)

// Pace is how a member follows the election at present.
type Pace uint8

// The paces.
const (
	Pushed     Pace = iota + 1 // the store tells of changes and is read in its silence alone
	Frequent                   // it is polled often: in transitions and in trouble
	Infrequent                 // it is polled seldom: a leader is seen to renew
)

// Pace returns how this member follows.
func (m *Machine) Pace() Pace {
	switch {
	case m.watching:
		return Pushed
	case m.view.thriving() && m.failures == 0 && !m.mine():
		return Infrequent
	}
	return Frequent
}

// follow reads when there is cause to: nothing known, an unknown outcome, or silence.
func (m *Machine) follow(now clock.Reading, at *alarm) *Op {
	left := m.patience(now)
	if left <= 0 {
		return m.read(now)
	}
	at.in(left)
	return nil
}

// patience is the time until the next read is due.
func (m *Machine) patience(now clock.Reading) time.Duration {
	switch {
	case m.view.known() && !m.view.suspect:
		return m.quiet() - now.FollowerSince(m.view.heard)
	case m.failures > 0:
		return m.retryDelay(m.failures) - now.LeaderSince(m.failedAt)
	}
	return 0
}

// quiet is the silence after which the cell is read. Where changes are pushed it is longer than a holder's interval, so
// that nothing is read while all is well.
func (m *Machine) quiet() time.Duration {
	if m.watching {
		return m.beat()
	}
	interval := m.interval()
	if end := m.runsOut(); end > 0 && end <= longest(interval) {
		return end // the read that must be made then is all that is needed
	}
	return m.dithered(interval)
}

// beat is the silence after which a member to whom changes are pushed reads: longer than a healthy
// holder is silent. It is 0 where nothing is pushed.
func (m *Machine) beat() time.Duration {
	if !m.watching {
		return 0
	}
	beat := m.cfg.heartbeat()
	if r := &m.view.cell.Record; !m.view.cell.illegible() {
		beat = max(beat, r.Lease/3+r.Lease/12)
	}
	return beat
}

// allMembersArePushed reports whether all members hear of changes as soon as this one does.
func (m *Machine) allMembersArePushed() bool { return m.watching && !m.cfg.Hearsay }

// runsOut is the time from the last look at the cell to the moment when, with no sign of its holder, it may be claimed:
// the earliest at which a read can find that the holder is gone. Not above 0: nothing runs out.
func (m *Machine) runsOut() time.Duration {
	c := &m.view.cell
	if c.Kind == Absent || c.Kind == Foreign || c.Kind == Valid && c.Record.Released {
		return 0
	}
	return m.lasts() - m.view.heard.FollowerSince(m.view.since)
}

// interval is the time between two reads of a store that does not push, give or take a tenth.
func (m *Machine) interval() time.Duration {
	if m.Pace() == Infrequent {
		return m.cfg.PollStable
	}
	return m.cfg.Poll
}

// dithered spreads d over 90 to 110 %, differently after each read, so that many members do not ask in step.
func (m *Machine) dithered(d time.Duration) time.Duration {
	return d - d/10 + d/5/256*time.Duration(m.dither)
}

// longest is the longest that d may become by dithering.
func longest(d time.Duration) time.Duration { return d + d/10 }

// headStart is the time in which everybody else who lives has seen what this member sees: one who reads seldom looks
// again at the latest when the lease that it knows of would be over. It must show after what all wait for a nominee, by
// clocks that differ.
func (m *Machine) headStart() time.Duration {
	yields, _ := m.delayForNominee()
	if m.allMembersArePushed() {
		return m.cfg.HeadStart + yields/8
	}
	gap := max(m.beat(), min(longest(max(m.cfg.Poll, m.cfg.PollStable)), m.view.wait(m.cfg)))
	return max(m.cfg.HeadStart, gap+gap/8) + yields/8
}

// retryDelay is the wait before the next try after n failed ones in a row: what is configured, and then (L8) an interval each time, by
// which followers do not keep step, or less for a leader.
func (m *Machine) retryDelay(n int32) time.Duration {
	switch {
	case n == 0:
		return 0
	case m.phase == Leading: // what is held may be shorter than what is set
		if int(n) > len(m.cfg.Retry) {
			return m.insistence()
		}
		return min(m.cfg.Retry[n-1], m.lease.held.renew/2)
	case int(n) <= len(m.cfg.Retry):
		return m.cfg.Retry[n-1]
	}
	return m.dithered(m.cfg.Renew)
}

// insistence is how often a leader goes on to try when the waits that are configured are over. A whole interval would leave a store
// that comes back shortly before the deadline unnoticed.
func (m *Machine) insistence() time.Duration { return min(m.cfg.Renew, m.lease.held.renew) / 4 }
