package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
)

// failing measures elections on servers that fail some requests.
type failing struct {
	mode    mode
	leases  choice[[]time.Duration]
	servers func() []failingServers
}

// failingServers is implemented by servers that inject faults, from the creation of a bucket on.
type failingServers interface {
	servers
	struck() int // the number of faults so far
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
	all := x.servers()
	for _, s := range sideBySide(t, len(all), func(t *trial, i int) losses {
		c := t.crew(plan{name: "failing", members: 3, elections: 4, lease: lease,
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
func (c *crew) churn(window time.Duration) {
	c.join(c.members...)
	c.heardForAll(0, nil, leads)
	end := time.Now().Add(window)
	for i := 0; time.Now().Before(end); i++ {
		c.sleep(3 * c.lease)
		m := c.members[i%len(c.members)]
		mark := c.journal.mark()
		c.tell(command{Do: stop}, m)
		c.rejoin(mark, m)
	}
}

// losses counts the losses in all reports.
func (c *crew) losses() losses {
	s := losses{verdict: c.book.Judge()}
	s.of = s.verdict.Terms
	all := c.journal.since(0)
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
func (c *crew) deadline(all []entry, of entry) (at int64) {
	usable := c.role.Lease - tenure.Config{Lease: c.role.Lease}.Margin() - c.role.Lease/1000
	for _, e := range all {
		same := e.who == of.who && e.Election == of.Election && e.Token == of.Token
		if same && e.What == wrote && !e.Released && (e.Until < at || e.At > at) {
			at = e.At + int64(usable)
		}
	}
	return at
}
