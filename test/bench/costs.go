package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
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
	c := t.team(plan{name: "steady", members: candidates, elections: max(x.elections, 1),
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
func (c *team) requests(count func() []counts, leases int) ([]counts, error) {
	mark, before := c.journal.Mark(), count()
	c.sleep(time.Duration(leases) * c.lease)
	after := count()
	for i, kinds := range after {
		for kind := range kinds {
			kinds[kind] -= before[i][kind]
		}
	}
	e, changed := crew.Last(c.journal.Since(mark), func(e entry) bool { return e.What == leads })
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

// crowd measures the costs of many elections in one process.
type crowd struct {
	modes     []mode
	elections []int       // in each mode
	window    choice[int] // in seconds
	others    string
}

func (x crowd) about() about {
	return about{"crowd",
		fmt.Sprintf("%v elections in one process over one client, lease 15 s", x.elections),
		"One process leads all, another follows all. Memory and goroutines are the differences to the " +
			"same process before the elections started, divided by the number of elections. Resident " +
			"is the memory that the system counts, heap is live objects. All leaders renew at once here, " +
			"with one or two goroutines for each write under way, which gives the highest number of " +
			"goroutines. Each leader runs the user's function in a goroutine. A consumer group has a " +
			"client of its own for each election"}
}

func (x crowd) measure(t *trial) {
	inTurn(t, len(x.elections), func(t *trial, i int) {
		c := t.team(plan{name: "crowd", members: 2, elections: x.elections[i],
			lease: 15 * time.Second, mode: x.modes[i], quiet: true})
		leading, following := c.weigh(time.Duration(pick(t.bench, x.window)) * time.Second)
		lines := append(c.costs("following", following, 0), c.costs("leading", leading, 1)...)
		lines[0].others = x.others
		t.report(lines...)
	})
}

// weigh lets the first member lead all elections and the second follow.
func (c *team) weigh(window time.Duration) (leading, following machine.Usage) {
	before := c.usages(weigh)
	mark := c.journal.Mark()
	c.join(c.members[0])
	c.heardForAll(mark, c.members[0], leads)
	c.join(c.members[1])
	c.sleep(5 * time.Second) // one renewal interval, so that the costs of the start are not counted
	running := c.usages(weigh)
	c.sleep(window)
	late := c.usages(weigh)
	return late[0].Minus(before[0].Usage, running[0].Usage),
		late[1].Minus(before[1].Usage, running[1].Usage)
}

// costs returns the costs of each further election. Goroutines is how many of the goroutines of an
// election are the user's.
func (c *team) costs(role string, u machine.Usage, goroutines float64) []measure {
	const most = 2e6
	role, n := c.mode.label()+role+": ", float64(len(c.role.Elections))
	line := measure{what: role + "goroutines, at rest / most, each",
		value: fmt.Sprintf("%.2f / %.2f", float64(u.Goroutines)/n, float64(u.Peak)/n)}
	if c.mode.session.full == 0 {
		line.bound = fmt.Sprintf("%.0f", goroutines)
		line.verdict = figures.Within(float64(u.Goroutines) < (goroutines+0.1)*n)
	}
	kilobytes := func(bytes uint64) string { return fmt.Sprintf("%.1f KB", float64(bytes)/n/1000) }
	return []measure{
		{what: role + "resident / heap, each", value: kilobytes(u.Resident) + " / " + kilobytes(u.Heap),
			bound: "below 2 MB", verdict: figures.Within(float64(u.Resident) < most*n)},
		line,
		{what: role + "processor, all", value: u.Share()},
	}
}

// operations measures single operations of a store.
type operations struct {
	n    choice[int]
	swap figures.Bound
}

func (operations) about() about {
	return about{"store", "single operations of the store, one after another",
		"From the call to its return, with a value of 300 bytes"}
}

func (x operations) measure(t *trial) {
	on, bucket := t.shared(), t.unique("store")
	check(on.Create(t.ctx, bucket))
	reads, swaps := measureOperations(t, t.open(on, bucket), pick(t.bench, x.n))
	t.report(timed("Read", reads, figures.Bound{}, ""), timed("CompareAndSwap", swaps, x.swap, ""))
}

// measureOperations writes a cell and reads it, n times.
func measureOperations(t *trial, s driver.Store, n int) (reads, swaps figures.Dist) {
	version := must(s.Read(t.ctx, "cell")).Version
	for range n {
		began := time.Now()
		version = must(s.CompareAndSwap(t.ctx, "cell", version, make([]byte, 300)))
		swapped := time.Now()
		must(s.Read(t.ctx, "cell"))
		swaps, reads = append(swaps, swapped.Sub(began)), append(reads, time.Since(swapped))
	}
	return reads, swaps
}
