package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

var crashRow = row{
	name:  "crash",
	title: "the leader's process is killed (SIGKILL), three candidates, lease 5 s, renewed every third of it",
	note: "The lease ends 5 s after the dead leader's process stamped its last write that reached the store, just before " +
		"sending it; which one that was, the version names that the successor's claim replaced. Both measures end when the " +
		"successor's lead is entered. The crash comes at a random moment between two renewals and begins with the parent's " +
		"stamp before the signal",
	measure: crash,
}

const crashLease = 5 * time.Second

// failover is one crash: from the end of the lease, and from the crash itself, to the next leader.
type failover struct{ late, total time.Duration }

func crash(b *bench) ([]measure, error) {
	const groups = 6
	rounds := b.pick(1, 10)
	bucket, err := b.bucket()
	if err != nil {
		return nil, err
	}
	all, err := parallel(groups, func(i int) ([]failover, error) { return crashes(b, bucket, i, rounds) })
	if err != nil {
		return nil, err
	}
	var late, total figures.Dist
	for _, f := range all {
		late, total = append(late, f.late), append(total, f.total)
	}
	share := func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()/crashLease.Seconds()) }
	return []measure{
		{what: "elected before the lease ended", value: fmt.Sprintf("%d of %d", early(late), len(late)), bound: "0",
			verdict: figures.Safe(early(late) == 0)},
		{what: "end of lease to next leader", value: late.String(), bound: "median 25 ms",
			verdict: figures.Within(late.Median() <= 25*time.Millisecond)},
		{what: "crash to next leader", value: total.String(), before: "57.4 s median, 67.5 max (TTL 30 s)",
			others: "etcd 3.8 s median (TTL 5 s)"},
		{what: "the same in leases, median / max", value: share(total.Median()) + " / " + share(total.Max()),
			bound: "about 0.83", before: "1.9", others: "etcd 0.76"},
	}, nil
}

func early(late figures.Dist) int {
	n := 0
	for _, d := range late {
		if d < 0 {
			n++
		}
	}
	return n
}

// crashes kills one leader after another of one election.
func crashes(b *bench, bucket string, group, rounds int) ([]failover, error) {
	c, err := b.cast(fmt.Sprintf("crash%d", group), 3,
		command{Do: start, Bucket: bucket, Elections: []string{fmt.Sprintf("crash%d", group)}, Lease: crashLease})
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	return c.crashes(rounds)
}

// crashes lets all campaign for one election and kills its leaders.
func (c *cast) crashes(rounds int) ([]failover, error) {
	if err := c.join(0, c.members...); err != nil {
		return nil, err
	}
	if _, _, err := c.successor(0, nil); err != nil {
		return nil, err
	}
	var found []failover
	for range rounds {
		f, err := c.crash()
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, nil
}

// crash kills the leader at a random moment of its renewal interval, and returns with all three in place.
func (c *cast) crash() (failover, error) {
	c.b.sleep(c.role.Lease/3 + rand.N(c.role.Lease/3))
	f, dead, err := c.failover()
	if err != nil {
		return f, err
	}
	fmt.Fprintf(c.b.log, "  %s: next leader %s after the lease\n", c.name, figures.Show(f.late))
	return f, c.replace(dead)
}

// failover kills the leader and waits for the next.
func (c *cast) failover() (f failover, dead *member, err error) {
	mark := c.journal.mark()
	dead = c.present()
	at := machine.Now()
	dead.kill()
	e, _, err := c.successor(mark, dead)
	if err != nil {
		return f, nil, err
	}
	sent, err := c.lastSend(dead.id, e)
	return failover{
		late:  time.Duration(e.At-sent) - c.role.Lease,
		total: time.Duration(e.At - at),
	}, dead, err
}

// lastSend is when the write of the dead leader was sent that the successor's claim replaced, or that a request of others
// replaced which the claim did: they copy it.
func (c *cast) lastSend(dead string, next entry) (int64, error) {
	all, _ := c.journal.since(0)
	all = slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return e.Election != next.Election })
	claim, ok := last(all, func(e entry) bool { return e.who == next.who && e.What == sending && e.At <= next.At })
	if !ok {
		return 0, errors.New("no claim of the new leader was reported")
	}
	for version := claim.Prev; ; {
		written, ok := last(all, func(e entry) bool { return e.What == wrote && e.Version == version })
		switch {
		case !ok:
			return unanswered(all, dead, version)
		case written.who == dead:
			return written.At, nil
		}
		version = written.Prev
	}
}

// unanswered finds the write whose answer the dead leader did not live to see, or learned of otherwise: the one before
// the first that went out from this version, and if there is none the last.
func unanswered(all []entry, dead, version string) (int64, error) {
	var at int64
	for _, e := range all {
		if e.who != dead || e.What != sending {
			continue
		}
		if e.Prev == version && at > 0 {
			break
		}
		at = e.At
	}
	if at == 0 {
		return 0, errors.New("no write of the dead leader was reported")
	}
	return at, nil
}
