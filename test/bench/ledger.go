package main

import (
	"slices"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// ledger holds the terms of many elections. Members report their beginnings and ends, in any order.
type ledger struct {
	terms map[string][]span // by election, in the order of their beginnings
	// margin is the part of a lease that the leader does not use.
	margin time.Duration
}

// span is a term: from the entry into lead until its work has finished.
type span struct {
	who        string
	begin, end int64 // by machine.Now; an end of 0 was not reported
	expired    bool  // ended at its deadline, however late a busy process reports it
	killed     bool  // its process was killed; the end is that of the lease
}

// note takes a report.
func (l *ledger) note(e entry) {
	all := l.terms[e.Election]
	switch e.What {
	case leads:
		i := len(all)
		for i > 0 && all[i-1].begin > e.At {
			i--
		}
		l.terms[e.Election] = slices.Insert(all, i, span{who: e.who, begin: e.At})
	case left:
		for i := range all {
			if s := &all[i]; s.who == e.who && s.end == 0 {
				s.end, s.expired = e.At, e.Expired
				break
			}
		}
	}
}

// kill ends the terms of a killed member with its leases. If another member leads already, no
// report can say when the term ended: it counts as ended in time.
func (l *ledger) kill(who string, leases map[string]int64) {
	for name, all := range l.terms {
		for i := range all {
			s := &all[i]
			switch {
			case s.who != who || s.end != 0:
			case i+1 < len(all):
				s.end = all[i+1].begin
			default:
				s.end, s.killed = max(s.begin, leases[name]), true
			}
		}
	}
}

// overlaps reports whether another term begins before this one ends.
func (l *ledger) overlaps(s span, next int64) bool {
	switch {
	case s.killed:
		return next < s.end-int64(l.margin)
	case s.expired:
		return false
	}
	return s.end == 0 || next < s.end
}

// wrong counts the terms that began too early.
func (l *ledger) wrong() (n int) {
	for _, all := range l.terms {
		for i := range all[1:] {
			if l.overlaps(all[i], all[i+1].begin) {
				n++
			}
		}
	}
	return n
}

// changes sums up the terms that began after a moment.
type changes struct {
	begun  int
	latest int64        // when the last one began
	gaps   figures.Dist // without a leader before each
	late   figures.Dist // after the end of a killed leader's lease
	ended  int64        // the last end of these leases
	led    int64        // when all of their elections were led again
}

func (l *ledger) since(moment int64) changes {
	c := changes{latest: moment}
	for _, all := range l.terms {
		for i, s := range all {
			if s.begin < moment {
				continue
			}
			c.begun++
			c.latest = max(c.latest, s.begin)
			if i == 0 {
				continue
			}
			before := all[i-1]
			c.gaps = append(c.gaps, time.Duration(s.begin-min(before.end, s.begin)))
			if before.killed {
				c.late = append(c.late, time.Duration(s.begin-before.end))
				c.ended, c.led = max(c.ended, before.end), max(c.led, s.begin)
			}
		}
	}
	return c
}

// leader is empty if the last term has ended.
func (l *ledger) leader(election string) string {
	if all := l.terms[election]; len(all) > 0 && all[len(all)-1].end == 0 {
		return all[len(all)-1].who
	}
	return ""
}

// loads counts how many elections each member leads.
func (l *ledger) loads(members []*member) []int {
	led := map[string]int{}
	for name := range l.terms {
		led[l.leader(name)]++
	}
	var all []int
	for _, m := range members {
		all = append(all, led[m.id])
	}
	return all
}

// fair reports whether all elections have leaders, and no member leads 10 % more than its share.
// A fleet aims at half of that excess; other members may win a few elections in addition.
func (l *ledger) fair(members []*member, elections int) bool {
	sum := 0
	for _, n := range l.loads(members) {
		sum += n
		if 10*n*len(members) > 11*elections {
			return false
		}
	}
	return sum == elections
}
