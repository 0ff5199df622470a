package main

import (
	"fmt"
	"time"

	acts "github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
)

var logCutRow = row{
	name: "kafka-cut",
	title: "Kafka: the leader's process is cut off from all brokers for two and a half leases of 1 s: its connections stay open, and " +
		"every byte in both directions is lost (odd runs) or arrives when the cut is over (even runs)",
	note: "Three candidates, each through TCP relays of its own, one to each broker, in log mode and with a consumer group of sessions of 2 s that " +
		"nominates. Questions, answers and the control are those of row pause",
	measure: func(b *bench) ([]measure, error) {
		return b.logFault(true, func(c *cast, leader *member, round int) error {
			return c.cutOffAWhile(leader, round%2 == 0)
		})
	},
}

var logPauseRow = row{
	name:  "kafka-pause",
	title: "Kafka: the leader's process is stopped (SIGSTOP) for two leases of 1 s and goes on (SIGCONT), three candidates",
	note: "In log mode and with a consumer group of sessions of 2 s that nominates. Questions, answers and the control are those of " +
		"row pause",
	measure: func(b *bench) ([]measure, error) {
		return b.logFault(false, func(c *cast, leader *member, _ int) error { return c.pauseAWhile(leader) })
	},
}

var logCoordinatorRow = row{
	name: "kafka-coordinator",
	title: "Kafka: the leader's process is cut off from the coordinator of the group that nominated it, for two and a half sessions of 2 s, and " +
		"from nothing else; lost and held bytes as in row kafka-cut, lease 1 s",
	note: "Three candidates, each through TCP relays of its own. The coordinator is never the broker that leads the log's partition. " +
		"Questions and answers are those of row pause. The control has no election: three consumers of franz-go, of which that one leads " +
		"to which the group last gave partition 0, until it is told otherwise",
	measure: logCoordinator,
}

func logCoordinator(b *bench) ([]measure, error) {
	return several(b, 2, func(i int) ([]measure, error) {
		if i == 0 {
			return b.strikeTerms(groupSession, true, (*cast).cutCoordinator)
		}
		s := scene{members: 3, elections: 1, relayed: true, session: groupSession}
		return b.strikeControl(s, "consumers that go by the group alone", (*cast).own, (*cast).cutCoordinator)
	})
}

// groupSession is short enough for many runs, and longer than what a heartbeat waits on a busy machine.
const groupSession = 2 * time.Second

// fault befalls a leader, and returns when there is another and the old one has had time to learn of it.
type fault func(c *cast, leader *member, round int) error

// logFault strikes leaders whose work goes by the term, in log mode and with a group that nominates, and as a control those
// whose work goes by memory.
func (b *bench) logFault(relayed bool, strike fault) ([]measure, error) {
	return several(b, 3, func(i int) ([]measure, error) {
		if i < 2 {
			return b.strikeTerms(time.Duration(i)*groupSession, relayed, strike)
		}
		s := scene{members: 3, elections: 1, lease: logLease, relayed: relayed, ask: asking.ByMemory}
		return b.strikeControl(s, byMemory, enthroneFirst, strike)
	})
}

// strikeTerms strikes leaders whose work goes by the term. A session is of the group that nominates; 0: there is none.
func (b *bench) strikeTerms(session time.Duration, relayed bool, strike fault) ([]measure, error) {
	rounds := (b.repeat(b.strikers(), 50) + b.strikers() - 1) / b.strikers()
	s := scene{members: 3, elections: 1, lease: logLease, relayed: relayed, ask: asking.ByTerm, session: session}
	v, err := b.strikeAll(s, enthroneFirst, strike, rounds)
	return []measure{{what: s.mode() + ": answers of yes after the next was elected", value: overlap(v, b.strikers()*rounds),
		bound: "0", verdict: figures.Safe(v.Safe())}}, err
}

// strikeControl strikes those whose work must be found to overlap.
func (b *bench) strikeControl(s scene, what string, begin func(*cast) error, strike fault) ([]measure, error) {
	control, err := controlled(what, b.strikers(), func() (acts.Verdict, error) { return b.strikeAll(s, begin, strike, 1) })
	return []measure{control}, err
}

// strikers is how many elections are struck side by side.
func (b *bench) strikers() int { return b.pick(2, 5) }

func (s scene) mode() string {
	if s.session == 0 {
		return "log"
	}
	return "group"
}

func enthroneFirst(c *cast) error {
	_, err := c.enthrone()
	return err
}

func (b *bench) strikeAll(s scene, begin func(*cast) error, strike fault, rounds int) (acts.Verdict, error) {
	return judgeAll(b.strikers(), func(i int) (acts.Verdict, error) {
		own := s
		own.name = fmt.Sprintf("%s-%s%d", s.mode(), s.ask, i)
		c, err := b.logStage(own)
		defer c.dismiss()
		if err != nil {
			return acts.Verdict{}, err
		}
		err = begin(c)
		for round := range rounds {
			if err != nil {
				return acts.Verdict{}, err
			}
			c.b.sleep(settle)
			err = strike(c, c.present(), round)
		}
		fmt.Fprintf(b.log, "  %s: %+v\n", c.name, c.book.Judge())
		return c.book.Judge(), err
	})
}

// pauseAWhile stops the leader for two leases, and until there is another.
func (c *cast) pauseAWhile(leader *member) error {
	mark := c.reign(leader)
	end := time.Now().Add(2 * c.role.Lease)
	if err := leader.pause(); err != nil {
		return err
	}
	_, _, err := c.successor(mark, leader)
	c.b.sleep(time.Until(end))
	if err := leader.resume(); err != nil {
		return err
	}
	c.b.sleep(c.role.Lease)
	return err
}

// cutCoordinator takes the leader's way to the coordinator of its group.
func (c *cast) cutCoordinator(leader *member, round int) error {
	way := relays{leader.relay[c.coordinator]}
	cut, heal := way.Hold, way.Release
	if round%2 == 0 {
		cut, heal = way.Blackhole, way.Heal
	}
	mark, end := c.reign(leader), time.Now().Add(5*c.role.Session/2)
	cut()
	_, _, err := c.successor(mark, leader)
	c.b.sleep(time.Until(end))
	heal()
	c.b.sleep(c.role.Lease)
	return err
}

// own has all members consume, and waits until one owns the partition and the group is at rest.
func (c *cast) own() error {
	what := c.role
	what.Do = consume
	for _, m := range c.members {
		if err := c.tell(what, m); err != nil {
			return err
		}
		if _, err := c.await(0, nil, leads); err != nil {
			return err
		}
	}
	c.b.sleep(c.role.Session)
	return nil
}
