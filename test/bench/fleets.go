package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/timing"
)

// fleets spreads many elections over processes.
type fleets struct{}

func (fleets) about() about {
	return about{"fleet", "10,000 elections spread over three processes, each over one client, " +
		"lease 30 s; then a fourth joins, one is killed (SIGKILL), one ends; in a quick run 1,000 " +
		"elections and 6 s",
		"Costs are per process, without the costs before the fleet started. Each process leads a third " +
			"and follows the rest. Requests are those of all three. The lease of an election begins at " +
			"the time in the killed leader's last record. An election has a leader from the call of the " +
			"handler until the work has finished. A change is over when no election has moved for 5 s"}
}

func (fleets) measure(t *trial) {
	lease := pick(t.bench, choice[time.Duration]{6 * time.Second, 30 * time.Second})
	newFleet(t, pick(t.bench, choice[int]{1000, 10_000}), lease).measure()
}

// fleetTeam is a team that runs a fleet.
type fleetTeam struct{ *team }

// newFleet hires three members and starts nothing yet.
func newFleet(t *trial, elections int, lease time.Duration) fleetTeam {
	c := t.team(plan{name: "fleet", members: 3, elections: elections, lease: lease, quiet: true})
	c.role.Do = joinFleet
	return fleetTeam{c}
}

func (f fleetTeam) measure() {
	f.begin()
	f.hire(1)
	f.moves("a fourth joins", f.change(func() { f.tell(f.role, f.members[len(f.members)-1]) }))
	f.crash()
	f.moves("one ends", f.change(func() {
		m, mark := f.members[0], f.journal.Mark()
		f.tell(command{Do: stop}, m)
		f.heard(mark, m, stopped)
		f.kill(m)
	}))
	v := judge(terms(f.journal.Since(0)), timing.Margin(tenure.Config{Lease: f.lease}), machine.Now(),
		func(who string) bool { return f.member(who) != nil })
	f.report(measure{what: "led by two at once, or elected before the lease's end",
		value: overlap(v), bound: "0", verdict: figures.Safe(v.Safe())})
}

// begin starts the first three and measures what they cost.
func (f fleetTeam) begin() {
	before := f.usages(weigh)
	started := f.change(func() { f.tell(f.role) })
	f.report(measure{what: "started together on an empty bucket: all led after",
		value: figures.Show(started.whole)})
	f.spread("started")
	f.sleep(f.lease) // so that the costs of the start are not counted
	early := f.usages(weigh)
	sent, n := 0.0, float64(len(f.role.Elections))
	for _, member := range must(f.requests(f.counter(), 2)) {
		sent += float64(member[messages]) / (2 * f.lease.Minutes())
	}
	for i, late := range f.usages(weigh) {
		who, u := fmt.Sprint("process ", i+1), late.Minus(before[i].Usage, early[i].Usage)
		f.report(
			measure{what: who + ": heap per election", value: fmt.Sprintf("%.2f KB", float64(u.Heap)/n/1000),
				bound: "2 KB", verdict: figures.Within(float64(u.Heap) <= 2048*n)},
			measure{what: who + ": goroutines, at rest / most", bound: "100, however many elections",
				value:   fmt.Sprint(u.Goroutines, " / ", u.Peak),
				verdict: figures.Within(u.Goroutines <= 100)},
			measure{what: who + ": processor", value: u.Share(),
				bound: "20 %", verdict: figures.Within(float64(u.CPU) <= 0.2*float64(u.At))})
	}
	renewals := n * 3 / f.lease.Minutes()
	f.report(measure{what: "requests per minute, all three", value: fmt.Sprintf("%.0f", sent),
		bound:   fmt.Sprintf("%.0f renewals, 10 %% more", renewals),
		verdict: figures.Within(sent < 1.1*renewals)})
}

// crash kills a member. The bench reports in its place that its terms end with their leases, which
// its last records show.
func (f fleetTeam) crash() {
	m := f.members[0]
	c := f.change(func() {
		f.kill(m)
		f.sleep(settle) // until its last write is applied
		store, now, wall := f.open(f.servers, f.role.Bucket), machine.Now(), time.Now()
		for _, name := range f.role.Elections {
			r := must(record.Decode(must(store.Read(f.ctx, name)).Value))
			if !r.Held() || r.LeaderID != m.id {
				continue
			}
			end := now - int64(wall.Sub(r.LastUpdated)) + int64(f.lease)
			f.journal.Add(entry{m.id,
				report{What: left, Election: name, Token: r.Term, At: end, Killed: true}})
		}
	})
	most := figures.Bound{Max: 2 * time.Second}
	f.report(timed("one is killed: end of lease to next leader", c.late, most, ""),
		timed("last lease's end to all led again", figures.Dist{c.over}, most, ""),
		measure{what: "kill to all led again", value: figures.Show(c.whole)})
	f.spread("after it")
}

func (f fleetTeam) moves(what string, c change) {
	f.report(measure{what: what + ": the last move after", value: figures.Show(c.whole)},
		measure{what: what + ": elections moved",
			value: fmt.Sprintf("%d of %d", c.begun, len(f.role.Elections))},
		timed(what+": without a leader", c.gaps, figures.Bound{}, ""))
	f.spread("after it")
}

func (f fleetTeam) spread(when string) {
	loads := f.loads()
	share := float64(len(f.role.Elections)) / float64(len(f.members))
	least, most := float64(slices.Min(loads)), float64(slices.Max(loads))
	f.report(measure{what: when + ": led per member, of its share",
		value: fmt.Sprintf("%.3f to %.3f", least/share, most/share),
		bound: "1.05", verdict: figures.Within(most <= max(1.05*share, math.Ceil(share)))})
}

// change calls cause, and waits until all elections have leaders, no member leads more than its
// share allows, and no election moves any more.
func (f fleetTeam) change(cause func()) change {
	began := machine.Now()
	cause()
	for balanced := int64(0); ; f.sleep(5 * settle) {
		check(f.ctx.Err())
		entries := f.journal.Since(0)
		check(f.journal.Failed())
		c, now := changesSince(terms(entries), began), machine.Now()
		if balanced == 0 && f.fair() {
			balanced = now
		}
		if balanced != 0 && now-max(balanced, began+int64(c.whole)) > int64(5*time.Second) {
			return c
		}
	}
}

// span is a term, from the call of the handler until its work has finished.
type span struct {
	who        string
	token      uint64
	begin, end int64 // by machine.Now; end is 0 if it was not reported
	expired    bool  // ended at its deadline, even if a busy process reports it late
	killed     bool  // its process was killed; end is the end of the lease
}

// terms returns the terms of each election in their order. Members report in any order.
func terms(entries []entry) map[string][]span {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.At, b.At) })
	all := map[string][]span{}
	for _, e := range entries {
		switch e.What {
		case leads:
			all[e.Election] = append(all[e.Election], span{who: e.who, token: e.Token, begin: e.At})
		case left:
			for i, s := range all[e.Election] {
				if s.who == e.who && s.token == e.Token {
					all[e.Election][i] = span{s.who, s.token, s.begin, e.At, e.Expired, e.Killed}
				}
			}
		}
	}
	return all
}

// judge judges whether two led at once. A leader does not use the margin of its lease. If the term
// of a living member has no end, it goes on until now.
func judge(all map[string][]span, margin time.Duration, now int64,
	lives func(who string) bool) witness.Verdict {
	var book witness.Book
	for name, of := range all {
		for i, s := range of {
			book.Add(name, s.who, s.token, s.begin)
			switch {
			case s.expired:
			case s.killed:
				book.Add(name, s.who, s.token, max(s.begin, s.end-int64(margin)))
			case s.end > 0:
				book.Add(name, s.who, s.token, s.end)
			case i+1 < len(of) && lives(s.who):
				book.Add(name, s.who, s.token, now)
			}
		}
	}
	return book.Judge()
}

// change sums up the terms that began after a moment.
type change struct {
	begun int
	whole time.Duration // from the moment until the last of them began
	gaps  figures.Dist  // without a leader before each
	late  figures.Dist  // after the end of a killed leader's lease
	over  time.Duration // from the end of the last such lease until all of them had leaders
}

func changesSince(all map[string][]span, moment int64) (c change) {
	ended, led := int64(0), int64(0)
	for _, of := range all {
		for i, s := range of {
			if s.begin < moment {
				continue
			}
			c.begun++
			c.whole = max(c.whole, time.Duration(s.begin-moment))
			if i == 0 || of[i-1].end == 0 {
				continue
			}
			before := of[i-1]
			c.gaps = append(c.gaps, time.Duration(s.begin-min(before.end, s.begin)))
			if before.killed {
				c.late = append(c.late, time.Duration(s.begin-before.end))
				ended, led = max(ended, before.end), max(led, s.begin)
			}
		}
	}
	c.over = time.Duration(led - ended)
	return c
}

// loads counts how many elections each member leads.
func (f fleetTeam) loads() (all []int) {
	led := map[string]int{}
	for _, of := range terms(f.journal.Since(0)) {
		if now := of[len(of)-1]; now.end == 0 {
			led[now.who]++
		}
	}
	for _, m := range f.members {
		all = append(all, led[m.id])
	}
	return all
}

// fair reports whether all elections have leaders, and no member leads more than 10 % above its
// share. A fleet aims at 5 %, but a member may win a few elections of the others in addition.
func (f fleetTeam) fair() bool {
	sum, elections := 0, len(f.role.Elections)
	for _, n := range f.loads() {
		sum += n
		if 10*n*len(f.members) > 11*elections {
			return false
		}
	}
	return sum == elections
}
