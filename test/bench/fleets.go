package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// fleets spreads many elections over processes.
type fleets struct{}

func (fleets) about() about {
	return about{"fleet", "10,000 elections spread over three processes, each over one client, lease 30 s; " +
		"then a fourth joins, one is killed (SIGKILL), one ends; in a quick run 1,000 and 6 s",
		"Heap (after a collection), goroutines and processor time are per process, each of which leads a third " +
			"and follows the rest, minus those before its start; requests are counted as in row steady, of all " +
			"three. The lease of an election ends that long after the time in the killed leader's last record. " +
			"An election has a leader from the entry into lead until the work has finished. A change is over when " +
			"no election has moved for 5 s"}
}

// fleetCrew is a crew that runs a fleet.
type fleetCrew struct {
	*crew
	terms ledger
	read  int // how much of the journal is in the ledger
}

func (fleets) measure(t *trial) {
	lease := pick(t.bench, choice[time.Duration]{6 * time.Second, 30 * time.Second})
	newFleet(t, pick(t.bench, choice[int]{1000, 10_000}), lease).play(t)
}

// newFleet hires three members and starts nothing yet.
func newFleet(t *trial, elections int, lease time.Duration) *fleetCrew {
	c := t.crew(plan{name: "fleet", members: 3, elections: elections, lease: lease, quiet: true})
	c.role.Do = sail
	return &fleetCrew{crew: c, terms: ledger{map[string][]span{}, &c.book}}
}

func (f *fleetCrew) play(t *trial) {
	for _, act := range []func() []measure{f.begin, f.join, f.crash, f.leave} {
		t.report(act()...)
	}
	v := f.terms.judge(machine.Now())
	t.report(measure{what: "led by two at once, or elected before the lease's end",
		value: overlap(v, v.Terms), bound: "0", verdict: figures.Safe(v.Safe())})
}

// begin starts the first three and measures what they cost.
func (f *fleetCrew) begin() []measure {
	before := f.usages(weigh)
	took := f.change(func() { f.tell(f.role) })
	f.sleep(f.lease) // the costs of the start are over
	early := f.usages(weigh)
	sent := 0
	for _, member := range must(f.requests(f.counter(), 2)) {
		sent += member[messages]
	}
	late := f.usages(weigh)
	all := []measure{
		{what: "started together on an empty bucket: all led after", value: figures.Show(took.whole)},
		f.spread("started"),
	}
	for i, u := range late {
		all = append(all, f.costs(fmt.Sprint("process ", i+1), u.Minus(before[i].Usage, early[i].Usage))...)
	}
	perMinute := float64(sent) / (2 * f.lease.Minutes())
	renewals := len(f.role.Elections) * int(3*time.Minute/f.lease)
	return append(all, measure{what: "requests per minute, all three",
		value: fmt.Sprintf("%.0f", perMinute), bound: fmt.Sprintf("%d renewals, 10 %% more", renewals),
		verdict: figures.Within(perMinute < 1.1*float64(renewals))})
}

func (f *fleetCrew) costs(who string, u machine.Usage) []measure {
	n := float64(len(f.role.Elections))
	return []measure{
		{what: who + ": heap per election", value: fmt.Sprintf("%.2f KB", float64(u.Heap)/n/1000),
			bound: "2 KB", verdict: figures.Within(float64(u.Heap) <= 2048*n)},
		{what: who + ": goroutines, at rest / most", value: fmt.Sprint(u.Goroutines, " / ", u.Peak),
			bound: "100, however many elections", verdict: figures.Within(u.Goroutines <= 100)},
		{what: who + ": processor", value: u.Share(),
			bound: "20 %", verdict: figures.Within(float64(u.CPU) <= 0.2*float64(u.At))},
	}
}

// join starts a fourth.
func (f *fleetCrew) join() []measure {
	f.hire(1)
	return f.moves("a fourth joins", f.change(func() { f.tell(f.role, f.members[len(f.members)-1]) }))
}

// leave ends one in order.
func (f *fleetCrew) leave() []measure {
	return f.moves("one ends", f.change(func() {
		m, mark := f.members[0], f.journal.mark()
		f.tell(command{Do: stop}, m)
		f.heard(mark, m, stopped)
		f.kill(m)
	}))
}

// crash kills one.
func (f *fleetCrew) crash() []measure {
	took := f.change(func() {
		m := f.members[0]
		f.kill(m)
		f.sleep(settle) // its last write is applied
		ends := f.leases(m.id)
		f.catchUp()
		f.terms.kill(m.id, ends, tenure.Config{Lease: f.lease}.Margin())
	})
	c := took.changes
	two := within{max: 2 * time.Second}
	return []measure{
		timed("one is killed: end of lease to next leader", c.late, two, ""),
		timed("last lease's end to all led again", figures.Dist{time.Duration(c.led - c.ended)}, two, ""),
		{what: "kill to all led again", value: figures.Show(took.whole)},
		f.spread("after it"),
	}
}

// leases reads when the leases of a killed member end.
func (f *fleetCrew) leases(of string) map[string]int64 {
	store := f.open(f.servers, f.role.Bucket)
	ends, now, wall := map[string]int64{}, machine.Now(), time.Now()
	for _, name := range f.role.Elections {
		if r := peek(must(store.Read(f.ctx, name)).Value); r.LeaderID == of && !r.Released {
			ends[name] = now - int64(wall.Sub(r.LastUpdated)) + int64(f.lease)
		}
	}
	return ends
}

// took describes a change: when it was balanced, and when the last election had moved.
type took struct {
	balance, whole time.Duration
	changes
}

func (f *fleetCrew) moves(what string, t took) []measure {
	return []measure{
		{what: what + ": balanced after / the last move after", value: figures.Show(t.balance) + " / " + figures.Show(t.whole)},
		{what: what + ": elections moved", value: fmt.Sprintf("%d of %d", t.begun, len(f.role.Elections))},
		timed(what+": without a leader", t.gaps, within{}, ""),
		f.spread("after it"),
	}
}

func (f *fleetCrew) spread(when string) measure {
	loads := f.terms.loads(f.members)
	share := float64(len(f.role.Elections)) / float64(len(f.members))
	least, most := float64(slices.Min(loads)), float64(slices.Max(loads))
	return measure{what: when + ": led per member, of its share", value: fmt.Sprintf("%.3f to %.3f", least/share, most/share),
		bound: "1.05", verdict: figures.Within(most <= max(1.05*share, math.Ceil(share)))}
}

// change causes something and waits until all elections are led, fairly, and none moves any more.
func (f *fleetCrew) change(cause func()) took {
	const quiet, often = 5 * time.Second, 30 * time.Second
	began := machine.Now()
	cause()
	for balanced, said := int64(0), began; ; f.sleep(settle) {
		f.catchUp()
		c, now := f.terms.since(began), machine.Now()
		if balanced == 0 && f.terms.fair(f.members, len(f.role.Elections)) {
			balanced = now
		}
		if balanced != 0 && now-max(balanced, c.latest) > int64(quiet) {
			return took{time.Duration(balanced - began), time.Duration(c.latest - began), c}
		}
		progress := fmt.Sprintf("after %s %v of %d led, %d moved", figures.Show(time.Duration(now-began)),
			f.terms.loads(f.members), len(f.role.Elections), c.begun)
		if f.ctx.Err() != nil {
			check(errors.New(progress))
		}
		if now-said > int64(often) {
			said = now
			fmt.Fprintln(f.log, " ", progress)
		}
	}
}

// catchUp takes the new reports into the ledger.
func (f *fleetCrew) catchUp() {
	news := f.journal.since(f.read)
	f.read += len(news)
	for _, e := range news {
		if e.What == failed {
			check(fmt.Errorf("%s: %s", e.who, e.Error))
		}
		f.terms.note(e)
	}
}
