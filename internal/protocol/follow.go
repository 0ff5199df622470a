package protocol

import (
	"time"

	"github.com/tenure-go/tenure/clock"
)

// Pushed reports whether the store pushes changes at present. Then members read only after a
// silence.
func (m *Machine) Pushed() bool { return m.watching }

// Confirmed reports whether the last contact showed that another leader has renewed. Without
// pushes, a member then reads at intervals of PollStable, unless a hand-over is asked for, and of
// Poll while Confirmed is false.
func (m *Machine) Confirmed() bool {
	return m.view.known() && m.view.thriving() && m.failures == 0 && !m.mine()
}

// follow returns a read if one is due, and else sets the wakeup for it.
func (m *Machine) follow(now clock.Reading, wake *wakeup) *Op {
	if !wake.reached(now, m.readAt(now)) {
		return nil
	}
	return m.read(now)
}

// readAt returns when the next read is due. While the view is uncertain, that is at once, or after
// a pause if operations failed. Otherwise it is readDelay after the last sight of the cell.
func (m *Machine) readAt(now clock.Reading) due {
	switch {
	case m.view.certain():
		return m.certainUntil(now)
	case m.failures > 0:
		return byLeader(m.failedAt, m.retryDelay(m.failures))
	}
	return byLeader(now.Instant, 0)
}

// certainUntil returns when the cell is read next if the view is certain: readDelay after the last
// sign, or earlier when rumors have postponed the read for long enough.
func (m *Machine) certainUntil(now clock.Reading) due {
	heard, _ := m.view.lastSign()
	quiet, verify := byFollower(heard, m.readDelay(now)), m.verifyAt()
	if m.view.rumor != nil && verify.left(now.Instant) < quiet.left(now.Instant) {
		return verify
	}
	return quiet
}

// readDelay returns the time from the last sight of the cell to the next read. Where changes are
// pushed, it is longer than a healthy holder is silent, so no reads are needed while the holder is
// healthy.
func (m *Machine) readDelay(now clock.Reading) time.Duration {
	if m.watching {
		return m.silence()
	}
	interval := m.cfg.Poll
	if m.Confirmed() && !m.handOverPending(now) {
		interval = m.cfg.PollStable
	}
	if m.view.mayHoldLease() {
		stands := m.standsUntil()
		if left := stands.left(m.view.heard); left > 0 && left <= longest(interval) {
			// A claim needs a read when the lease ends. If the member then waits for a nominee, the
			// claim needs another read after that wait.
			return left
		}
	}
	return m.dithered(interval)
}

// silence returns the time without a push after which the cell is read: longer than a healthy
// holder is silent. It is 0 where nothing is pushed.
func (m *Machine) silence() time.Duration {
	if !m.watching {
		return 0
	}
	silence := m.cfg.heartbeat()
	if r := &m.view.cell.Record; !m.view.cell.illegible() {
		silence = max(silence, r.Lease/3+r.Lease/12)
	}
	return silence
}

// allMembersArePushed reports whether a push reaches all members at about the same time as this
// member.
func (m *Machine) allMembersArePushed() bool { return m.watching && !m.cfg.Hearsay }

// standsUntil returns when the record in view stops counting as a leader's if its holder does not
// renew. For a member that only observes, and so claims nothing, the record's lease alone counts.
func (m *Machine) standsUntil() due {
	lease := m.view.cell.Record.Lease
	if m.phase != Idle || lease <= 0 {
		lease = m.view.expiresAfter(m.cfg)
	}
	return byFollower(m.view.renewedAt(), lease)
}

// dithered spreads d over 90 to 110 %, differently after each read, so that many members do not
// read at the same time.
func (m *Machine) dithered(d time.Duration) time.Duration {
	return d - d/10 + d/5/256*time.Duration(m.dither)
}

// longest returns the longest that d may become by dithering.
func longest(d time.Duration) time.Duration { return d + d/10 }

// headStart returns the time after which every other living member has seen the state in this
// member's view. A member without pushes reads at the latest when the lease that it knows of ends.
// An eighth of the wait for a nominee is added, because two clocks may measure that wait
// differently.
func (m *Machine) headStart() time.Duration {
	nomineeWait, _ := m.delayForNominee()
	if m.allMembersArePushed() {
		return m.cfg.HeadStart + nomineeWait/8
	}
	gap := max(m.silence(), min(longest(max(m.cfg.Poll, m.cfg.PollStable)), m.view.expiresAfter(m.cfg)))
	return max(m.cfg.HeadStart, gap+gap/8) + nomineeWait/8
}

// retryDelay returns the time from the last of n failures in a row to the next try (L8): the
// configured waits, and then one renewal interval each time, dithered so that followers do not keep
// step. A leader goes on at a quarter of its interval: with a whole one it could miss a store that
// comes back shortly before the deadline.
func (m *Machine) retryDelay(n int32) time.Duration {
	switch {
	case n == 0:
		return 0
	case m.phase == Leading: // its lease may be shorter than the configured one
		if int(n) > len(m.cfg.Retry) {
			return min(m.cfg.Renew, m.lease.held.renew) / 4
		}
		return min(m.cfg.Retry[n-1], m.lease.held.renew/2)
	case int(n) <= len(m.cfg.Retry):
		return m.cfg.Retry[n-1]
	}
	return m.dithered(m.cfg.Renew)
}
