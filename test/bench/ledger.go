package main

import (
	"slices"
	"time"

	"github.com/tenure-go/tenure/test/internal/acts"
	"github.com/tenure-go/tenure/test/internal/figures"
)

// ledger holds the terms of many elections. Members report their beginnings and ends, in any order.
type ledger struct {
	terms map[string][]span // by election, in the order of their beginnings
	book  *acts.Book        // judges the beginnings and ends
}

// span is a term: from the entry into lead until its work has finished.
type span struct {
	who        string
	token      uint64
	begin, end int64 // by machine.Now; an end of 0 was not reported
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
		l.terms[e.Election] = slices.Insert(all, i, span{who: e.who, token: e.Token, begin: e.At})
		l.book.Add(e.Election, e.who, e.Token, e.At)
	case left:
		for i, s := range all {
			if s.who == e.who && s.token == e.Token {
				all[i].end = e.At
			}
		}
		if !e.Expired { // else it ended at its deadline, however late a busy process reports it
			l.book.Add(e.Election, e.who, e.Token, e.At)
		}
	}
}

// kill ends the terms of a killed member with its leases, except for the margin that the leader does
// not use. If another member leads already, no report can say when the term ended: it counts as ended
// in time.
func (l *ledger) kill(who string, leases map[string]int64, margin time.Duration) {
	for name, all := range l.terms {
		for i := range all {
			s := &all[i]
			switch {
			case s.who != who || s.end != 0:
			case i+1 < len(all):
				s.end = all[i+1].begin
			default:
				s.end, s.killed = max(s.begin, leases[name]), true
				l.book.Add(name, who, s.token, max(s.begin, s.end-int64(margin)))
			}
		}
	}
}

// judge judges all terms. Those that have not ended beside a later one went on until now.
func (l *ledger) judge(now int64) acts.Verdict {
	for name, all := range l.terms {
		for _, s := range all[:len(all)-1] {
			if s.end == 0 {
				l.book.Add(name, s.who, s.token, now)
			}
		}
	}
	return l.book.Judge()
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
			if i == 0 || all[i-1].end == 0 {
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
