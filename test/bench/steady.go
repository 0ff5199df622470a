package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// steady counts requests while nothing happens.
type steady struct {
	modes     []mode
	elections int // 0 means one
	lease     choice[time.Duration]
	window    choice[int]        // in leases
	prices    map[string]float64 // in dollars, by kind
	note      string
	others    string
}

// budget holds the requests of an election per minute, by kind, with a lease of 15 s.
type budget map[string]float64

// total is the kind of all requests together.
const total = "all"

const candidates = 10

func (x steady) about() about {
	return about{"steady", fmt.Sprintf("ten candidates in ten processes while nothing happens, %s, "+
		"lease %v, renewed every third of it", elections(x.elections), x.lease),
		x.note + ". Rates are those with a lease of 15 s"}
}

func (x steady) measure(t *trial) {
	inTurn(t, len(x.modes), func(t *trial, i int) {
		lines := x.count(t, x.modes[i])
		lines[0].others = x.others
		t.report(lines...)
	})
}

// count counts requests, and counts again if a leader loses its lease because the machine is busy.
func (x steady) count(t *trial, m mode) []measure {
	c := t.crew(plan{name: "steady", members: candidates, elections: max(x.elections, 1),
		lease: pick(t.bench, x.lease), mode: m})
	c.electFirst()
	count := c.counter()
	leases := pick(t.bench, x.window)
	for try := 1; ; try++ {
		c.sleep(2 * c.lease) // so that the requests of the start are not counted
		found, err := c.requests(count, leases)
		if err == nil || try == 4 {
			check(err)
			return x.lines(m, found, 4/float64(leases)/float64(len(c.role.Elections)))
		}
		fmt.Fprintf(t.log, "  again, for %v\n", err)
	}
}

// requests counts the requests of each member in a window of a number of leases. It fails if a
// leader changes in that time.
func (c *crew) requests(count func() []counts, leases int) ([]counts, error) {
	mark, before := c.journal.mark(), count()
	c.sleep(time.Duration(leases) * c.lease)
	after := count()
	for i, kinds := range after {
		for kind := range kinds {
			kinds[kind] -= before[i][kind]
		}
	}
	e, changed := last(c.journal.since(mark), func(e entry) bool { return e.What == leads })
	if changed {
		return after, fmt.Errorf("%w: %s became leader of %s", errBusy, e.who, e.Election)
	}
	return after, nil
}

// lines returns the measures of the counts. One is the rate of a single request in the window, per
// minute.
func (x steady) lines(m mode, members []counts, one float64) []measure {
	sum, most := budget{}, budget{}
	for _, member := range members {
		for kind, n := range member {
			rate := float64(n) * one
			if n == 0 {
				continue
			}
			sum[kind] += rate
			if _, bounded := m.requests[total]; bounded {
				sum[total] += rate
			}
			most[kind] = max(most[kind], rate)
		}
	}
	found := []measure{
		{what: m.label() + "requests per minute, each election", value: sum.String(),
			bound: m.requests.String(), verdict: figures.Within(sum.keeps(m.requests, one))},
		{what: m.label() + "the most by one process", value: most.String()},
	}
	if x.prices == nil {
		return found
	}
	dollars := 0.0
	for kind, price := range x.prices {
		dollars += sum[kind] * price * 60 * 24 * 30
	}
	return append(found, measure{what: m.label() + "a month",
		value: fmt.Sprintf("$%.2f", dollars)})
}

// keeps allows for one more request at an edge of the window, and for rounding.
func (b budget) keeps(bounds budget, one float64) bool {
	for kind, bound := range bounds {
		if b[kind] > bound && (bound == 0 || b[kind] > 1.03*bound+one) {
			return false
		}
	}
	return true
}

func (b budget) String() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(b)) {
		all = append(all, fmt.Sprintf("%s %.1f", kind, b[kind]))
	}
	return strings.Join(all, ", ")
}
