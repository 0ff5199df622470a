package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/halt"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// trial is one election of a peer with processes of its own. As in a test, the first error ends it.
type trial struct {
	ctx     context.Context
	peer    int
	servers rig.Running
	at      place
	journal crew.Journal[entry]
	book    witness.Book
	members []*member
}

// entry is a report of a member.
type entry struct {
	who *member
	report
}

// member is a candidate's process, which reaches the server through a relay.
type member struct {
	*crew.Process
	id     string
	relays relay.Set
}

// errUnsettled means that the leader changed just before the measurement, which happens on a busy
// machine.
var errUnsettled = errors.New("the leader changed before the measurement")

const candidates = 3

// hire starts a member.
func (t *trial) hire(r role) *member {
	if peers[t.peer].alone && len(t.members) == 0 {
		halt.On(t.servers.Create(t.ctx, t.at.Bucket))
	}
	m := &member{id: fmt.Sprintf("%s-%d", t.at.ID, len(t.members)+1)}
	m.relays = halt.Unless(relay.NewSet(t.at.Addresses))
	t.members = append(t.members, m)
	r.place, r.Peer = t.at, t.peer
	r.ID = m.id
	r.Via = m.relays.Via()
	cmd := crew.Self()
	cmd.Env = append(os.Environ(), memberVariable+"=1")
	m.Process = halt.Unless(crew.Hire(cmd, r, func(said report) { t.hear(m, said) }, func(line string) {
		if os.Getenv("TENURE_PEERS_LOG") != "" {
			fmt.Fprintln(os.Stderr, line)
		}
	}))
	return m
}

func (t *trial) hear(m *member, r report) {
	switch r.What {
	case acted:
		// Terms have no tokens here. Their beginnings order them.
		t.book.Add("", m.id, uint64(r.Began), r.Acts...)
	case failed:
		t.journal.Fail(errors.New(r.Error))
	default:
		t.journal.Add(entry{m, r})
	}
}

// end kills all members, and returns when all of their reports were heard.
func (t *trial) end() {
	for _, m := range t.members {
		if m.Process != nil {
			_ = m.Kill()
			<-m.Ended()
		}
		m.relays.Close()
	}
}

// patience bounds the wait for reports that always come.
const patience = 2 * time.Minute

// await waits for a report of any of these members.
func (t *trial) await(mark int, w what, limit time.Duration, by ...*member) (entry, error) {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	return t.journal.Await(ctx, mark, string(w), func(e entry) bool {
		for _, m := range by {
			if e.who == m && e.What == w {
				return true
			}
		}
		return false
	})
}

// begin elects a member, lets the others join, and sleeps until the leader is anywhere between two
// renewals. A group of Kafka's consumers may choose another leader when a member joins.
func (t *trial) begin() (leader *member, others []*member) {
	r := role{Elections: []string{t.at.ID}}
	halt.Unless(t.await(0, elected, patience, t.hire(r)))
	for range candidates - 1 {
		halt.Unless(t.await(0, joined, patience, t.hire(r)))
	}
	t.sleep(t.at.Lease)
	settled := t.journal.Mark()
	t.sleep(rand.N(t.at.Lease))
	for _, e := range t.journal.Since(settled) {
		if e.What == elected || e.What == lost {
			halt.On(errUnsettled)
		}
	}
	for _, e := range t.journal.Since(0) {
		if e.What == elected {
			leader = e.who
		}
	}
	isLeader := func(m *member) bool { return m == leader }
	return leader, slices.DeleteFunc(slices.Clone(t.members), isLeader)
}

func (t *trial) sleep(d time.Duration) { rig.Sleep(t.ctx, d) }

// outcome is the outcome of one strike at a leader.
type outcome struct {
	what      strike
	unsettled bool          // not measured: the leader changed before each attempt
	next      bool          // another member was elected
	took      time.Duration // from the strike until then
	witness.Verdict
}

// strike is what happens to a leader.
type strike string

const (
	handOver strike = "hand-over" // it is asked to stop
	crash    strike = "crash"     // SIGKILL
	freeze   strike = "freeze"    // SIGSTOP until after the next election, then SIGCONT
	cut      strike = "cut"       // all bytes in both directions are lost
)

// strikes lists all of them.
var strikes = []strike{handOver, crash, freeze, cut}

// limit is the number of leases after which a strike has had no successor. A frozen or cut-off
// leader comes back then.
var limit = map[strike]time.Duration{handOver: 5, crash: 5, freeze: 3, cut: 3}

// measure strikes a leader once.
func (t *trial) measure(what strike) (o outcome, err error) {
	defer halt.Catch(&err)
	defer func() {
		t.end()
		o.Verdict = t.book.Judge()
	}()
	o.what = what
	leader, others := t.begin()
	mark, at := t.journal.Mark(), machine.Now()
	over := t.strike(what, leader)
	e, err := t.await(mark, elected, limit[what]*t.at.Lease, others...)
	switch {
	case err == nil:
		if what == handOver {
			at = halt.Unless(t.await(mark, stopped, patience, leader)).At
		}
		o.next, o.took = true, time.Duration(e.At-at)
	case t.journal.Failed() != nil || t.ctx.Err() != nil:
		return o, err
	}
	t.sleep(t.at.Lease / 4)
	over()
	if what == freeze || what == cut {
		t.sleep(t.at.Lease)
	}
	return o, nil
}

// strike begins a strike. The returned function ends it.
func (t *trial) strike(what strike, leader *member) (over func()) {
	over = func() {}
	switch what {
	case handOver:
		halt.On(leader.Send(stop))
	case crash:
		halt.On(leader.Kill())
	case freeze:
		halt.On(leader.Freeze())
		over = func() { halt.On(leader.Continue()) }
	case cut:
		leader.relays.Blackhole()
		over = leader.relays.Heal
	}
	return over
}

// steady counts what the members send to the store while nothing happens.
func (t *trial) steady(window time.Duration) (perMinute float64, err error) {
	defer halt.Catch(&err)
	defer t.end()
	t.begin()
	sent := func() (n int64) {
		for _, m := range t.members {
			for _, r := range m.relays {
				n += r.Sent()
			}
		}
		return n
	}
	before := sent()
	t.sleep(window)
	return float64(sent()-before) / window.Minutes(), nil
}

// crowd is the usage of one process for each election that it leads.
type crowd struct {
	elections, goroutines int
	bytes                 float64 // of the heap, for each election
}

// crowd measures a process that leads n elections.
func (t *trial) crowd(n int) (c crowd, err error) {
	defer halt.Catch(&err)
	defer t.end()
	c.elections = n
	r := role{Quiet: true}
	for i := range n {
		r.Elections = append(r.Elections, fmt.Sprintf("%s-%d", t.at.ID, i))
	}
	m := t.hire(r)
	before := halt.Unless(t.await(0, used, patience, m))
	led := 0
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	halt.Unless(t.journal.Await(ctx, 0, "the elections", func(e entry) bool {
		if e.What == elected {
			led++
		}
		return led == n
	}))
	t.sleep(t.at.Lease)
	mark := t.journal.Mark()
	halt.On(m.Send(weigh))
	after := halt.Unless(t.await(mark, used, patience, m))
	c.goroutines = after.Usage.Goroutines - before.Usage.Goroutines
	c.bytes = (float64(after.Usage.Heap) - float64(before.Usage.Heap)) / float64(n)
	return c, nil
}
