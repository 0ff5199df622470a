package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/timing"
)

// faults injects faults into servers one by one, under leaders with long and short leases.
type faults struct {
	away choice[time.Duration] // how long a server is away at least
}

func (x faults) about() about {
	return about{"faults", fmt.Sprintf("one of three servers is killed (SIGKILL), frozen (SIGSTOP), "+
		"and on NATS shut down or cut off from the others, for %v and until all elections are renewed, "+
		"and comes back; all are restarted one after another; leases of 20 s, 10 s and 5 s", x.away),
		"Three candidates and for each lease three elections, each in a bucket that a different server " +
			"leads. Each candidate connects to a different server first, on NATS with " +
			"natskv.OwnConnection. On Kafka every other victim is the active controller. An election is " +
			"kept if no candidate was elected until all servers and copies were back. Back is the time " +
			"from the fault to the answer to the first renewal sent after it. The gap is the longest time " +
			"from the answer to one renewal to the answer to the next. The control's leaders are paused"}
}

// placement is one election, in a bucket of one server.
type placement struct {
	election, bucket string
	lease            time.Duration
	home             int // the server that leads the bucket while it is up
}

// faultsTeam is a team with elections in buckets of all servers.
type faultsTeam struct {
	*team
	on         breakable
	placements []placement
}

func (x faults) measure(t *trial) {
	on := breakableOf(t.shared())
	if on == nil {
		t.report(measure{what: "not measured: kfake cannot fail; -brokers starts real brokers"})
		return
	}
	leases := []time.Duration{20 * time.Second, 10 * time.Second, 5 * time.Second}
	kinds := on.faults()
	if t.quick {
		leases, kinds = leases[:1], kinds[:2]
	}
	f := newFaultsTeam(t, on, leases)
	found := map[string][]effect{}
	note := func(fault string, victim, controller int, began int64) {
		for _, h := range f.effectsSince(began) {
			name := fmt.Sprintf("lease %v, %s%s", h.lease, role(h.home, victim, controller), fault)
			found[name] = append(found[name], h)
			fmt.Fprintf(t.log, "  %s: %t, back after %s\n", name, h.kept, figures.Show(h.back))
		}
	}
	for round := range t.repeat(choice[int]{1, 10}, 1) {
		for i, fault := range kinds {
			controller := on.controller(t.ctx)
			victim := (round + i) % len(on.Addresses())
			if controller >= 0 && round%2 == 0 {
				victim = controller
			}
			note(fault.name, victim, controller, f.injectFault(fault, victim, pick(t.bench, x.away)))
		}
		note(rolling, -1, -1, f.restartAll(kinds[0]))
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		t.report(kept(name, found[name])...)
	}
	t.report(judgedLine("", f.book.Judge(), ""), f.control())
}

const rolling = "rolling restart"

// role names the role of a failed server for an election with this home.
func role(home, victim, controller int) string {
	switch victim {
	case -1: // all servers
		return ""
	case home:
		return "the bucket's leader "
	case controller:
		return "the controller "
	}
	return "another server "
}

// newFaultsTeam starts a team whose members campaign in all elections, and each lead some.
func newFaultsTeam(t *trial, on breakable, leases []time.Duration) *faultsTeam {
	f := &faultsTeam{team: t.team(plan{name: "faults", members: 3, ask: asking.ByTerm}), on: on}
	for home := range on.Addresses() {
		bucket := t.unique("faults")
		on.createAt(t.ctx, bucket, home)
		for _, lease := range leases {
			p := placement{fmt.Sprintf("%s-%s", bucket, lease), bucket, lease, home}
			f.placements = append(f.placements, p)
			f.role.Bucket, f.role.Elections, f.role.Lease = p.bucket, []string{p.election}, p.lease
			leader := f.electFirst()
			f.members = append(f.members[1:], leader)
		}
	}
	return f
}

// injectFault lets one server fail and return. It returns the time when the fault began.
func (f *faultsTeam) injectFault(fault serverFault, victim int, least time.Duration) int64 {
	began, end := machine.Now(), time.Now().Add(least)
	check(fault.begin(victim))
	f.renewed(began)
	f.sleep(time.Until(end))
	check(fault.end(victim))
	f.repair()
	return began
}

// restartAll restarts all servers in order, each when all copies are complete. It returns the time
// when that began.
func (f *faultsTeam) restartAll(restart serverFault) int64 {
	began := machine.Now()
	for server := range f.on.Addresses() {
		check(restart.begin(server))
		check(restart.end(server))
		f.on.whole(f.ctx)
	}
	f.repair()
	return began
}

// repair waits until all copies are complete, gives each bucket back to its own server, and waits
// for a write of each election after that.
func (f *faultsTeam) repair() {
	f.on.whole(f.ctx)
	f.on.restore(f.ctx)
	f.renewed(machine.Now())
}

// renewed waits for each election until a write was applied that was sent after a moment.
func (f *faultsTeam) renewed(after int64) {
	for _, p := range f.placements {
		f.await(0, "a write of "+p.election, func(e entry) bool {
			return e.Election == p.election && e.What == wrote && e.At > after
		})
	}
}

// effect says what happened to an election since a moment.
type effect struct {
	placement
	kept bool          // no candidate was elected
	gap  time.Duration // the longest time from the answer to one write to the answer to the next
	back time.Duration // from the moment to the answer to the first write sent after it
}

func (f *faultsTeam) effectsSince(since int64) (found []effect) {
	for _, p := range f.placements {
		h, last := effect{placement: p, kept: true}, int64(0)
		for _, e := range f.journal.Since(0) {
			switch {
			case e.Election != p.election:
			case e.What == leads && e.At > since:
				h.kept = false
			case e.What == wrote:
				if e.At > since && h.back == 0 {
					h.back = time.Duration(e.Until - since)
				}
				if last > 0 && e.Until > since {
					h.gap = max(h.gap, time.Duration(e.Until-last))
				}
				last = e.Until
			}
		}
		found = append(found, h)
	}
	return found
}

// kept returns the measures of elections that kept their leaders. All of them must, with a lease of
// 20 s and in a rolling restart.
func kept(name string, effects []effect) []measure {
	n, back, gaps := 0, figures.Dist{}, figures.Dist{}
	for _, h := range effects {
		back, gaps = append(back, h.back), append(gaps, h.gap)
		if h.kept {
			n++
		}
	}
	m := measure{what: name + ": kept", value: fmt.Sprintf("%d of %d; back %s", n, len(effects), back)}
	if effects[0].lease >= 20*time.Second || strings.HasSuffix(name, rolling) {
		m.bound, m.verdict = "all", figures.Within(n == len(effects))
	}
	return []measure{m, timed(name+": gap", gaps, figures.Bound{}, "")}
}

// control pauses leaders whose work asks a flag.
func (f *faultsTeam) control() measure {
	x := pause(strike{groups: always(1)})
	return controlled(x.control, func() witness.Verdict {
		return x.strikes(f.trial, mode{}, x.beginControl, 1)
	})
}

// failing measures elections on servers that fail some requests.
type failing struct {
	mode   mode
	leases choice[[]time.Duration]
}

func (x failing) about() about {
	return about{"failing", fmt.Sprintf("30 %% of the requests fail: four servers have one fault "+
		"each (lost answers, 409, 429, 500), and a fifth has each of them for a quarter of that; three "+
		"candidates, four elections on each server, a member leaves and returns every three leases; "+
		"leases of %v", x.leases),
		"The servers are in the process of the bench and keep objects in memory. Only writes get 409. " +
			"A term is lost before its deadline if it ended without being resigned, for another cause " +
			"than its deadline, or earlier than the last renewal allowed that was confirmed in time"}
}

// losses counts the lost terms on failing servers.
type losses struct {
	verdict         witness.Verdict
	struck          int
	lost, early, of int // terms
	writes          int
}

func (x failing) measure(t *trial) {
	leases := pick(t.bench, x.leases)
	sideBySide(t, len(leases), func(t *trial, i int) losses {
		sum := x.losses(t, leases[i])
		label := "lease " + leases[i].String() + ": "
		t.report(judgedLine(label, sum.verdict, ""),
			none(label+"terms lost before their deadline", sum.early, sum.of),
			measure{what: label + "terms lost at their deadline", value: fmt.Sprintf(
				"%d of %d, in %d applied writes", sum.lost-sum.early, sum.of, sum.writes)},
			measure{what: label + "control: faults injected", value: fmt.Sprint(sum.struck),
				bound: "more than 100", verdict: figures.Within(sum.struck > 100)})
		return sum
	})
}

// losses adds up the losses on all servers.
func (x failing) losses(t *trial, lease time.Duration) (sum losses) {
	all := failingObjects()
	for _, s := range sideBySide(t, len(all), func(t *trial, i int) losses {
		c := t.team(plan{name: "failing", members: 3, elections: 4, lease: lease,
			mode: x.mode, ask: asking.ByTerm, servers: all[i]})
		c.churn(pick(t.bench, choice[time.Duration]{12 * time.Second, 2 * time.Minute}))
		found := c.losses()
		found.struck = all[i].struck()
		return found
	}) {
		sum.verdict = sum.verdict.Plus(s.verdict)
		sum.struck, sum.lost, sum.early = sum.struck+s.struck, sum.lost+s.lost, sum.early+s.early
		sum.of, sum.writes = sum.of+s.of, sum.writes+s.writes
	}
	return sum
}

// churn makes one member after another leave and return.
func (c *team) churn(window time.Duration) {
	c.join(c.members...)
	c.heardForAll(0, nil, leads)
	end := time.Now().Add(window)
	for i := 0; time.Now().Before(end); i++ {
		c.sleep(3 * c.lease)
		m := c.members[i%len(c.members)]
		mark := c.journal.Mark()
		c.tell(command{Do: stop}, m)
		c.rejoin(mark, m)
	}
}

// losses counts the losses in all reports.
func (c *team) losses() losses {
	s := losses{verdict: c.book.Judge()}
	s.of = s.verdict.Terms
	all := c.journal.Since(0)
	for _, e := range all {
		switch e.What {
		case wrote:
			s.writes++
		case lost:
			s.lost++
			deadline := c.deadline(all, e)
			if !e.Expired || e.At < deadline {
				s.early++
				fmt.Fprintf(c.log, "  %s lost term %d of %s %s before its deadline: %s\n", e.who, e.Token,
					e.Election, figures.Show(time.Duration(deadline-e.At)), e.Error)
			}
		}
	}
	return s
}

// deadline returns the deadline of a lost term, as far as the reports show. A write does not count
// if it was sent before the deadline of that time and confirmed after it. A write that was sent
// after that deadline shows that the leader found an earlier write by reading. The leader counts
// the faster of its clocks and this process counts another one, so a thousandth of the lease is
// allowed.
func (c *team) deadline(all []entry, of entry) (at int64) {
	usable := c.role.Lease - timing.Margin(tenure.Config{Lease: c.role.Lease}) - c.role.Lease/1000
	for _, e := range all {
		same := e.who == of.who && e.Election == of.Election && e.Token == of.Token
		if same && e.What == wrote && !e.Released && (e.Until < at || e.At > at) {
			at = e.At + int64(usable)
		}
	}
	return at
}
