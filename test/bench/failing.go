package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
)

// failing lets requests fail.
type failing struct {
	mode    mode
	leases  choice[[]time.Duration]
	servers func() []failingServers
}

// failingServers fail by a plan, from when a bucket is created.
type failingServers interface {
	servers
	struck() int // how many requests have failed
}

func (x failing) about() about {
	return about{"failing", fmt.Sprintf("30 %% of the requests fail: on one server each all get "+
		"lost answers, 409, 429 or 500, and on a fifth each of them a quarter of that; three "+
		"candidates, four elections on each, a member leaves and returns every three leases; leases of "+
		"%v", x.leases),
		"The servers are in the process of the bench and keep objects in memory. Only writes get 409. " +
			"A term is lost before its deadline if it ended, not being resigned, for another cause than " +
			"its deadline, or earlier than the last renewal allowed that was confirmed in time"}
}

// losses is what happened on failing servers.
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

// losses adds up what happens on all servers.
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

// churn lets one member after another leave and return.
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

// losses goes through all reports.
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

// deadline is that of a lost term, as far as the reports show. A write counts unless it was sent
// before the deadline of that time and confirmed after it; a write that was sent later shows that
// another one was found by reading. The leader counts the faster one of its clocks, and this
// process another one: a thousandth of the lease is allowed for that.
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
