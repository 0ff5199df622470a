package fleet_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/fleet"
)

// calm is long after a change. The first seats wait for their own lease, new elections wait for one
// lease, and elections that another member won are requested after two. The odd part avoids cutting
// a member off exactly at a renewal, when the known time may differ by an interval.
const calm = 5*lease + 31*time.Millisecond

// many is enough elections to show shares. With so few, up to one and a half times a share may
// move, or slightly more.
const many = 40

// few is enough elections for tests in which none may move.
const few = 15

func TestLeadershipIsSpread(t *testing.T) {
	bubbles(t, many, func(p *port) {
		p.join("a", "b", "c")
		time.Sleep(calm)
		p.spread("a", "b", "c")
		if n, _ := p.moved(); n != len(p.names) {
			p.t.Errorf("%d terms were begun to spread %d elections over members that start together", n, len(p.names))
		}
	})
}

// limit returns the longest acceptable vacancy. It depends on the store: without pushes the next
// leader may read a lease later, and so may a leader that must stop.
func (p *port) limit() time.Duration {
	if p.pushed() {
		return 1200 * time.Millisecond // the precedence, and the time of a claim
	}
	return 2 * lease
}

// after fails the test if more terms began since forget, or if an election had no leader for longer
// than the limit.
func (p *port) after(terms int, without time.Duration) {
	p.t.Helper()
	n, gap := p.moved()
	p.t.Logf("%d terms, without a leader for %v at most", n, gap)
	if n > terms {
		p.t.Errorf("%d terms were begun, more than %d", n, terms)
	}
	if gap > without {
		p.t.Errorf("an election had no leader for %v, longer than %v", gap, without)
	}
}

func TestJoiningMemberGetsItsShare(t *testing.T) {
	bubbles(t, many, func(p *port) {
		p.join("a", "b", "c")
		time.Sleep(calm)
		p.forget()
		p.join("d")
		time.Sleep(calm)
		p.spread("a", "b", "c", "d")
		p.after(many/2, p.limit())
	})
}

// The others look for its renewal soon, even without pushes.
func TestJoiningMemberCountsSoon(t *testing.T) {
	const presence, settle = lease / 2, 5 * time.Second
	bubbles(t, few, func(p *port) {
		p.join("a", "b")
		time.Sleep(calm)
		expected := settle + presence/2
		if !p.pushed() {
			expected += presence * 11 / 10 // until its seat is seen
		}
		for _, id := range []string{"c", "d", "e", "f"} {
			p.join(id)
			time.Sleep(expected)
			s := p.member("a").fleet.Status()
			if !slices.ContainsFunc(s.Members, func(m fleet.Member) bool { return m.ID == id && m.Counts }) {
				p.t.Errorf("%s does not count after %v: %+v", id, expected, s.Members)
			}
			time.Sleep(time.Second) // at another time between two renewals
		}
	})
}

func TestLeavingMemberHandsOver(t *testing.T) {
	bubbles(t, many, func(p *port) {
		p.join("a", "b", "c", "d")
		time.Sleep(calm)
		p.forget()
		p.leave("d")
		time.Sleep(calm)
		p.spread("a", "b", "c")
		p.after(many/2, p.limit())
	})
}

func TestCrashedMemberIsReplacedWhenItsLeasesEnd(t *testing.T) {
	bubbles(t, many, func(p *port) {
		p.join("a", "b", "c")
		time.Sleep(calm)
		p.forget()
		p.crash("c")
		time.Sleep(calm)
		p.spread("a", "b")
		p.after(many*6/10, p.limit())
	})
}

// A member that is cut off for less than a lease leads on. The others believe that it is gone once
// its seat is free. They may then move a few elections among themselves, as whenever a member
// leaves.
func TestMemberCutOffBrieflyKeepsLeading(t *testing.T) {
	for while, others := range map[time.Duration]int{6 * time.Second: 0, 12 * time.Second: few / 4, 18 * time.Second: few / 4} {
		t.Run(fmt.Sprint(while), func(t *testing.T) {
			bubbles(t, few, func(p *port) {
				p.join("a", "b", "c")
				time.Sleep(calm)
				p.forget()
				before := p.tokens("c")
				p.refuse(true, "c")
				time.Sleep(while)
				p.refuse(false, "c")
				time.Sleep(calm)
				p.spread("a", "b", "c")
				if after := p.tokens("c"); !maps.Equal(before, after) {
					p.t.Errorf("it led %v, and leads %v", before, after)
				}
				limit := p.limit()
				if others == 0 {
					limit = 0
				}
				p.after(others, limit)
			})
		})
	}
}

func TestMemberCutOffForLongGetsItsShareBack(t *testing.T) {
	bubbles(t, many, func(p *port) {
		p.join("a", "b", "c")
		time.Sleep(calm)
		p.forget()
		p.crash("c")
		time.Sleep(5 * lease)
		p.spread("a", "b")
		p.member("c").line.Heal()
		time.Sleep(calm)
		p.spread("a", "b", "c")
		p.after(many, p.limit())
	})
}

// The store is unreachable for all members, for longer than a seat's lease and shorter than the
// elections' leases.
func TestOutageMovesNothing(t *testing.T) {
	bubbles(t, few, func(p *port) {
		ids := []string{"a", "b", "c", "d"}
		p.join(ids...)
		time.Sleep(calm)
		p.forget()
		p.refuse(true, ids...)
		time.Sleep(18 * time.Second)
		p.refuse(false, ids...)
		time.Sleep(calm)
		p.spread(ids...)
		p.after(0, 0)
	})
}

func TestMemberThatLeavesEarlyMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, memory.New(), few)
		p.join("a", "b", "c")
		time.Sleep(calm)
		p.forget()
		for range 20 {
			p.join("d")
			time.Sleep(4 * time.Second)
			p.leave("d")
			time.Sleep(time.Second)
		}
		time.Sleep(calm)
		p.spread("a", "b", "c")
		p.after(0, 0)
	})
}

// The seat of a crashed member is held for a while longer. Elections that were handed to the member
// in that time would have no leader, or one that crashes next.
func TestMemberThatCrashesEarlyMovesNothing(t *testing.T) {
	bubbles(t, many, func(p *port) {
		p.join("a", "b", "c")
		time.Sleep(calm)
		p.forget()
		for i := range 10 {
			id := fmt.Sprint("d", i)
			p.join(id)
			time.Sleep(4 * time.Second)
			p.crash(id)
			time.Sleep(time.Second)
		}
		time.Sleep(calm)
		p.spread("a", "b", "c")
		p.after(0, 0)
	})
}

// The members end one after another, and come back under other names.
func TestRollingRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, memory.New(), many)
		p.join("a0", "b0", "c0", "d0")
		time.Sleep(calm)
		p.forget()
		for _, id := range []string{"a", "b", "c", "d"} {
			p.leave(id + "0")
			time.Sleep(5 * time.Second)
			p.join(id + "1")
			time.Sleep(lease)
		}
		time.Sleep(calm)
		p.spread("a1", "b1", "c1", "d1")
		p.after(4*2*many/2, time.Second)
	})
}

func TestLastMemberLeadsAll(t *testing.T) {
	bubbles(t, 30, func(p *port) {
		p.join("a")
		time.Sleep(calm)
		p.spread("a")
		p.join("b")
		time.Sleep(calm)
		p.leave("a")
		time.Sleep(calm)
		p.spread("b")
		before := time.Now()
		p.leave("b")
		if took := time.Since(before); took > 3*time.Second {
			p.t.Errorf("the last one took %v to end", took)
		}
		if n := p.leads(); len(n) > 0 {
			p.t.Errorf("they lead still: %v", n)
		}
	})
}

func TestMoreMembersThanElections(t *testing.T) {
	bubbles(t, 3, func(p *port) {
		p.join("a", "b", "c", "d", "e", "f")
		time.Sleep(calm)
		p.spread("a", "b", "c", "d", "e", "f")
	})
}

func TestNoElections(t *testing.T) {
	bubbles(t, 0, func(p *port) {
		p.join("a", "b")
		time.Sleep(calm)
		p.spread("a", "b")
		p.leave("a", "b")
	})
}

// Members without a seat lead nothing while members with a seat do. They take over from them.
func TestMoreMembersThanSeats(t *testing.T) {
	bubbles(t, 30, func(p *port) {
		for _, id := range []string{"a", "b", "c", "d"} {
			cfg := p.config(id)
			cfg.Members = 2
			p.joinWith(cfg)
		}
		time.Sleep(calm)
		var seated []string
		for id := range p.leads() {
			seated = append(seated, id)
		}
		if len(seated) != 2 {
			p.t.Fatalf("%v lead", p.leads())
		}
		p.spread(seated...)
		p.crash(seated[0])
		time.Sleep(2 * calm)
		if loads := p.leads(); len(loads) != 2 || loads[seated[0]] > 0 {
			p.t.Errorf("%v lead after %s has crashed", loads, seated[0])
		}
	})
}

// Members that count different seats assign elections differently. Still, each election has one
// leader at a time.
func TestDifferentSeatCountsKeepAllElectionsLed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, memory.New(), many)
		for id, seats := range map[string]int{"a": 1, "b": 4, "c": 64, "d": 1000} {
			cfg := p.config(id)
			cfg.Members = seats
			p.joinWith(cfg)
		}
		time.Sleep(calm)
		p.led()
		for _, id := range []string{"d", "c"} {
			p.forget()
			p.crash(id)
			time.Sleep(2 * lease)
			p.led()
			if _, gap := p.moved(); gap > 2*time.Second {
				t.Errorf("%s has crashed: an election had no leader for %v", id, gap)
			}
			time.Sleep(calm)
		}
	})
}

// The seats' leases are longer than those of the elections. So elections are taken over from a
// member that counts as present.
func TestCrashedMemberIsReplacedWhileItCountsAsPresent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, memory.New(), many)
		for _, id := range []string{"a", "b", "c", "d"} {
			cfg := p.config(id)
			cfg.Presence = 4 * lease
			p.joinWith(cfg)
		}
		time.Sleep(calm)
		p.spread("a", "b", "c", "d")
		p.forget()
		p.crash("d")
		time.Sleep(2 * lease)
		p.led()
		p.after(many/2, 2*time.Second)
	})
}

// led fails the test unless all elections have a leader.
func (p *port) led() {
	p.t.Helper()
	all := 0
	for _, n := range p.leads() {
		all += n
	}
	if all != len(p.names) {
		p.t.Errorf("%d of %d elections are led: %v", all, len(p.names), p.leads())
	}
}
