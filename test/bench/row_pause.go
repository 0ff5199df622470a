package main

import (
	"fmt"
	"time"

	acts "github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
)

var pauseRow = row{
	name: "pause",
	title: "a process that leads 20 elections is stopped (SIGSTOP) for two leases of 1 s and goes on (SIGCONT), three " +
		"processes",
	note: "The work of each leader asks every 2 ms whether it may act, and stamps each question before it asks. Counted are " +
		"the answers of yes whose stamp is later than the next leader's entry into lead; the time is from that entry to the " +
		"last of them. The control does the same with work that goes by a flag, which follows within 50 ms what it hears of leaders",
	measure: pause,
}

const (
	pauseLease     = time.Second
	pauseElections = 20
)

func pause(b *bench) ([]measure, error) {
	rounds := b.pick(1, 5)
	right, err := b.pauses(asking.ByTerm, rounds)
	if err != nil {
		return nil, err
	}
	control, err := controlled(byMemory, pauseElections, func() (acts.Verdict, error) { return b.pauses(asking.ByMemory, 1) })
	if err != nil {
		return nil, err
	}
	n := rounds * pauseElections
	return []measure{
		{what: "answers of yes after the next was elected", value: overlap(right, n), bound: "0", verdict: figures.Safe(right.Safe()),
			before: "stale in 5 of 7 runs", others: "goNELI 6 of 6"},
		control,
	}, nil
}

// byMemory is the usual control.
const byMemory = "work that goes by memory"

// controlled plays what must be found to overlap, again where a busy machine has hidden it. A play is of n runs.
func controlled(what string, n int, play func() (acts.Verdict, error)) (measure, error) {
	const most = 5
	var sum acts.Verdict
	for tries := 1; ; tries++ {
		v, err := play()
		sum = sum.Plus(v)
		if err != nil || sum.Stale > 0 || tries == most {
			return measure{what: "control: " + what, value: overlap(sum, tries*n), bound: "more than 0", verdict: figures.Safe(sum.Stale > 0)}, err
		}
	}
}

// overlap shows a verdict on n runs.
func overlap(v acts.Verdict, n int) string {
	s := fmt.Sprintf("%d of %d, n=%d", v.Stale, v.Acts, n)
	if v.Overlap > 0 {
		s += ", up to " + figures.Show(v.Overlap) + " after"
	}
	if v.Regressed > 0 {
		s += fmt.Sprintf(", %d terms not above the last", v.Regressed)
	}
	return s
}

// pauses lets one process lead all elections in each round, and stops it.
func (b *bench) pauses(how asking.Way, rounds int) (acts.Verdict, error) {
	bucket, err := b.bucket()
	if err != nil {
		return acts.Verdict{}, err
	}
	c, err := b.cast("pause", 3, command{Do: start, Bucket: bucket, Lease: pauseLease, Ask: how})
	defer c.dismiss()
	if err != nil {
		return acts.Verdict{}, err
	}
	for round := range rounds {
		c.role.Elections = nil
		for i := range pauseElections {
			c.role.Elections = append(c.role.Elections, fmt.Sprintf("pause-%d-%d", round, i))
		}
		if err := c.pauseLeader(); err != nil {
			return acts.Verdict{}, err
		}
	}
	return c.book.Judge(), nil
}

// pauseLeader makes the first member leader of all elections and stops it until others lead them all, two leases at least.
func (c *cast) pauseLeader() error {
	first, rest := c.members[0], c.members[1:]
	mark := c.journal.mark()
	if err := c.join(mark, first); err != nil {
		return err
	}
	if err := c.awaitAll(mark, first, leads); err != nil {
		return err
	}
	if err := c.join(c.journal.mark(), rest...); err != nil {
		return err
	}
	c.b.sleep(settle)
	mark = c.journal.mark()
	led := c.ledBy(c.role.Elections, first)
	if err := first.pause(); err != nil {
		return err
	}
	c.b.sleep(2 * pauseLease)
	_, overtaken := c.successors(mark, led, first)
	if err := first.resume(); err != nil {
		return err
	}
	if overtaken != nil {
		return overtaken
	}
	c.b.sleep(pauseLease / 2)
	fmt.Fprintf(c.b.log, "  %+v\n", c.book.Judge())
	return c.halt()
}
