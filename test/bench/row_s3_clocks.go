package main

import (
	"fmt"
	"slices"
	"time"

	acts "github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
)

var objectClocksRow = row{
	name: "s3-clocks",
	title: "object storage: four candidates whose times of day are right, 20 s ahead, 20 s behind and 1 h ahead, each leading ten " +
		"of 40 elections, lease 15 s; after three leases those two that are most ahead and behind are killed",
	note: "Requests are signed by the wrong time as well, except for the hour, which S3 does not accept: there the client library " +
		"goes by the server's time. Questions and answers are those of row pause, and early is judged as in row s3-crash. The " +
		"control judges what candidates read as one would who compares the record's time of day with his own and claims after " +
		"a lease",
	measure: objectClocks,
}

const ledByEach = 10

// clockErrors are in the order of the members.
var clockErrors = []time.Duration{0, 20 * time.Second, -20 * time.Second, time.Hour}

// skewed is what was found with wrong clocks.
type skewed struct {
	steals, reads, wrong int
	late                 figures.Dist
	verdict              acts.Verdict
}

func objectClocks(b *bench) ([]measure, error) {
	found, err := b.skewed()
	if err != nil {
		return nil, err
	}
	n := len(clockErrors) * ledByEach
	return []measure{
		{what: "elected while the leader lived", value: fmt.Sprintf("%d of %d", found.steals, n), bound: "0",
			verdict: figures.Safe(found.steals == 0), others: "S3lect: a joiner 20 s ahead steals at once"},
		{what: "elected before the lease of a dead leader ended", bound: "0",
			value: fmt.Sprintf("%d of %d", early(found.late), len(found.late)), verdict: figures.Safe(early(found.late) == 0)},
		{what: "answers of yes after the next was elected", value: overlap(found.verdict, n), bound: "0",
			verdict: figures.Safe(found.verdict.Safe())},
		{what: "control: reads by which one who compares clocks would claim from the living", bound: "more than 0",
			value: fmt.Sprintf("%d of %d", found.wrong, found.reads), verdict: figures.Safe(found.wrong > 0)},
	}, nil
}

func (b *bench) skewed() (skewed, error) {
	c, err := b.stage(scene{name: "clocks", members: len(clockErrors), elections: len(clockErrors) * ledByEach,
		lease: b.objectLease(), ask: asking.ByTerm, wall: clockErrors})
	defer c.dismiss()
	if err != nil {
		return skewed{}, err
	}
	if err := c.share(); err != nil {
		return skewed{}, err
	}
	var found skewed
	mark := c.journal.mark()
	b.sleep(3 * b.objectLease())
	news, _ := c.journal.since(mark)
	for _, e := range news {
		switch e.What {
		case leads:
			if c.stolen(e) {
				found.steals++
			}
		case judged:
			found.reads++
			if e.Age > b.objectLease() {
				found.wrong++
			}
		}
	}
	behind, ahead := c.members[2], c.members[3]
	found.late, err = c.orphan(c.role.Elections[2*ledByEach:], behind, ahead)
	found.verdict = c.book.Judge()
	return found, err
}

// stolen reports whether somebody was elected before the lease of the last leader had ended. One that lives may lose its lease on a busy
// machine.
func (c *cast) stolen(e entry) bool {
	all, _ := c.journal.since(0)
	before, ok := last(all, func(o entry) bool { return o.What == leads && o.Election == e.Election && o.At < e.At })
	if !ok || before.who == e.who {
		return false
	}
	sent, err := c.lastSend(before.who, e)
	return err != nil || e.At < sent+int64(c.role.Lease)
}

// share lets each member lead its part of the elections, and then follow the rest.
func (c *cast) share() error {
	all := c.role.Elections
	defer func() { c.role.Elections = all }()
	part := func(i int) []string { return all[i*ledByEach : (i+1)*ledByEach] }
	rest := func(i int) []string { return slices.Concat(all[:i*ledByEach], all[(i+1)*ledByEach:]) }
	c.role.Spread = c.role.Lease / 3
	if err := c.cue(part); err != nil {
		return err
	}
	c.role.Elections = all
	if err := c.awaitAll(0, nil, leads); err != nil {
		return err
	}
	c.role.Spread = c.role.Lease
	return c.cue(rest)
}

// cue lets all members join at once, each in elections of its own.
func (c *cast) cue(elections func(i int) []string) error {
	mark := c.journal.mark()
	for i, m := range c.members {
		c.role.Elections = elections(i)
		if err := c.tell(c.role, m); err != nil {
			return err
		}
	}
	for i, m := range c.members {
		c.role.Elections = elections(i)
		if err := c.awaitAll(mark, m, following); err != nil {
			return err
		}
	}
	return nil
}
