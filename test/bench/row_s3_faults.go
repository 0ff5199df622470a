package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-go/tenure"
	acts "github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

var objectFaultsRow = row{
	name: "s3-faults",
	title: "object storage that fails 30 % of the requests: on one server each all get lost answers, 409, 429 or 500, and on a " +
		"fifth each of them a quarter of that; three candidates, four elections on each, a member leaves and returns every three leases; leases of 2 s, and of 15 s but in " +
		"a quick run",
	note: "The servers are handlers in the process of the bench that keep objects in memory. 409 befalls writes alone. Lost before " +
		"its deadline is a term that ended, not being resigned, for another cause than its deadline, or earlier than its last " +
		"renewal allowed that was confirmed in time; lost at its deadline is one of which no renewal was confirmed for so long. Questions and answers " +
		"are those of row pause",
	measure: objectFaults,
}

// spoilt is what happened on a failing server.
type spoilt struct {
	verdict         acts.Verdict
	faults          int
	lost, early, of int // terms
	writes          int
}

func objectFaults(b *bench) ([]measure, error) {
	leases := []time.Duration{2 * time.Second, 15 * time.Second}[:b.pick(1, 2)]
	window := time.Duration(b.pick(12, 120)) * time.Second
	sums, err := parallel(len(leases), func(i int) ([]spoilt, error) {
		sum, err := b.spoil(leases[i], window)
		return []spoilt{sum}, err
	})
	var found []measure
	for i, sum := range sums {
		found = append(found, sum.measures(leases[i])...)
	}
	return found, err
}

func (s spoilt) measures(lease time.Duration) []measure {
	what := "lease " + figures.Show(lease) + ": "
	return []measure{
		{what: what + "answers of yes after the next was elected", bound: "0", verdict: figures.Safe(s.verdict.Safe()),
			value: overlap(s.verdict, len(plans())*spoiltElections)},
		{what: what + "terms lost before their deadline", value: fmt.Sprintf("%d of %d", s.early, s.of), bound: "0",
			verdict: figures.Safe(s.early == 0)},
		{what: what + "terms lost at their deadline", value: fmt.Sprintf("%d of %d, in %d applied writes", s.lost-s.early, s.of, s.writes)},
		{what: what + "control: faults injected", value: fmt.Sprint(s.faults), bound: "more than 100", verdict: figures.Within(s.faults > 100)},
	}
}

const (
	spoiltElections = 4
	chance          = 0.3
)

// plans are those of the servers.
func plans() []s3fake.Plan {
	kinds := []s3fake.Fault{s3fake.LoseAnswer, s3fake.Contended, s3fake.TooMany, s3fake.Broken}
	all := map[s3fake.Fault]float64{}
	var each []s3fake.Plan
	for _, k := range kinds {
		all[k] = chance / float64(len(kinds))
		each = append(each, s3fake.Plan{Chances: map[s3fake.Fault]float64{k: chance}})
	}
	return append(each, s3fake.Plan{Chances: all})
}

// spoil plays on all servers at once.
func (b *bench) spoil(lease, window time.Duration) (spoilt, error) {
	all, err := parallel(len(plans()), func(i int) ([]spoilt, error) {
		s, err := b.spoilOne(i, lease, window)
		return []spoilt{s}, err
	})
	var sum spoilt
	for _, s := range all {
		sum.verdict = sum.verdict.Plus(s.verdict)
		sum.faults, sum.lost, sum.early = sum.faults+s.faults, sum.lost+s.lost, sum.early+s.early
		sum.of, sum.writes = sum.of+s.of, sum.writes+s.writes
	}
	return sum, err
}

func (b *bench) spoilOne(i int, lease, window time.Duration) (spoilt, error) {
	const bucket = "elections"
	plan := plans()[i]
	server, err := s3fake.Start(rand.Uint64(), plan, bucket)
	if err != nil {
		return spoilt{}, err
	}
	defer server.Close()
	c, err := b.stage(scene{name: fmt.Sprintf("faults%d", i), members: 3, elections: spoiltElections, lease: lease,
		ask: asking.ByTerm, url: server.URL(), bucket: bucket})
	defer c.dismiss()
	if err != nil {
		return spoilt{}, err
	}
	if err := c.churn(window); err != nil {
		return spoilt{}, err
	}
	s := c.losses()
	for fault := range plan.Chances {
		s.faults += server.Struck(fault)
	}
	return s, nil
}

// churn has one member after another leave and return.
func (c *cast) churn(window time.Duration) error {
	if err := c.join(0, c.members...); err != nil {
		return err
	}
	if err := c.awaitAll(0, nil, leads); err != nil {
		return err
	}
	end := time.Now().Add(window)
	for i := 0; time.Now().Before(end) && c.b.ctx.Err() == nil; i++ {
		c.b.sleep(3 * c.role.Lease)
		m := c.members[i%len(c.members)]
		mark := c.journal.mark()
		if err := m.tell(command{Do: stop}); err != nil {
			return err
		}
		if _, err := c.await(mark, m, stopped); err != nil {
			return err
		}
		if err := c.join(c.journal.mark(), m); err != nil {
			return err
		}
	}
	return nil
}

// losses goes through all that was reported.
func (c *cast) losses() spoilt {
	s := spoilt{verdict: c.book.Judge()}
	s.of = s.verdict.Terms
	all, _ := c.journal.since(0)
	for _, e := range all {
		switch e.What {
		case wrote:
			s.writes++
		case lost:
			s.lost++
			deadline := c.deadline(all, e)
			if !e.Expired || e.At < deadline {
				s.early++
				fmt.Fprintf(c.b.log, "  %s lost term %d of %s %s before its deadline: %s\n", e.who, e.Token, e.Election,
					figures.Show(time.Duration(deadline-e.At)), e.Error)
			}
		}
	}
	return s
}

// deadline is that of a term that was lost, as far as the reports tell. A write counts unless it was sent before the
// deadline that there was and confirmed after it; one that was sent later shows that another was found by reading. The
// leader counts whichever of its clocks is fastest, and this process another one: a thousandth is allowed for that.
func (c *cast) deadline(all []entry, of entry) int64 {
	usable := c.role.Lease - tenure.Config{Lease: c.role.Lease}.Margin() - c.role.Lease/1000
	var at int64
	for _, e := range all {
		ours := e.who == of.who && e.Election == of.Election && e.Token == of.Token
		if ours && e.What == wrote && !e.Released && (e.Until < at || e.At > at) {
			at = e.At + int64(usable)
		}
	}
	return at
}
