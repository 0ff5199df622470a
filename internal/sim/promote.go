package main

import (
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// A database has a standby that may lack its last writes when it takes over. The database then
// reports another era. Each state keeps the era in which it was written, and a version names the
// era in which it was read. A write from a version of another era is refused. Members that start
// after the loss are checked like all others.

// promote moves the store to a standby.
func (s *store) promote() {
	w, lost := s.w, s.cell
	if n := len(s.history); n > 0 && w.promotions.chance(0.8) {
		i := s.releaseBefore(w.promotions.rng.IntN(n))
		s.cell, s.history = s.history[i].cell, s.history[:i]
	}
	s.life.era, s.life.from = s.life.era+1, w.now
	w.tracef(nil, "a standby takes over in era %d, with term %d", s.life.era, s.cell.Record.Term)
	number, _, _ := strings.Cut(string(s.cell.Version), "@")
	s.cell.Version = s.inEra(driver.Version(number))
	w.hinderAll()
	w.check.replaced(&lost, &s.cell)
	s.again, s.changed = nil, w.now
	w.crash(w.anyone()) // it starts again soon, without any knowledge
}

// edit puts an earlier value back, as a program does that ignores the rules of the store. The store
// notices that, and marks the state as unproven. The version changes, too; an edit that keeps the
// version, as in SQL, is not simulated.
func (s *store) edit() {
	w, n := s.w, len(s.history)
	if n == 0 {
		return
	}
	c := s.history[n-1-w.edits.rng.IntN(min(n, 4))].cell
	s.seq++
	c.Version, c.Unproven = s.inEra(driver.Version(strconv.FormatUint(s.seq, 10))), true
	w.tracef(nil, "an earlier value is put back by hand, with term %d", c.Record.Term)
	w.hinderAll()
	s.again = nil
	s.place(c)
	w.crash(w.anyone())
}

// releaseBefore returns the last release among the states up to i, or i if there is none. A member
// that trusts this release claims at once, while the holder of the lost term still leads.
func (s *store) releaseBefore(i int) int {
	for j := i; j >= 0; j-- {
		if s.history[j].cell.Record.Released {
			return j
		}
	}
	return i
}

// inherited reports whether a state was written in an earlier era, or by hand.
func (s *store) inherited(c *protocol.Cell) bool {
	return s.w.plan.promotes && c.Kind != protocol.Absent && (c.Era != s.life.era || c.Unproven)
}

// inEra adds the present era to the name of a state.
func (s *store) inEra(v driver.Version) driver.Version {
	if v == "" || !s.w.plan.promotes {
		return v
	}
	return v + driver.Version("@"+strconv.FormatUint(s.life.era, 10))
}
