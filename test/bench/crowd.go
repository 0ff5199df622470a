package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

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
		c := t.crew(plan{name: "crowd", members: 2, elections: x.elections[i],
			lease: 15 * time.Second, mode: x.modes[i], quiet: true})
		leading, following := c.weigh(time.Duration(pick(t.bench, x.window)) * time.Second)
		lines := append(c.costs("following", following, 0), c.costs("leading", leading, 1)...)
		lines[0].others = x.others
		t.report(lines...)
	})
}

// weigh lets the first member lead all elections and the second follow.
func (c *crew) weigh(window time.Duration) (leading, following machine.Usage) {
	before := c.usages(weigh)
	mark := c.journal.mark()
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
func (c *crew) costs(role string, u machine.Usage, goroutines float64) []measure {
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
