package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
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

// TestMoves: something happens to a fleet at rest. Afterwards these members lead all elections, and
// no more elections than needed have moved, none of them for long.
func TestMoves(t *testing.T) {
	type scenario struct {
		elections  int
		begin, end []string // the members
		happens    func(p *port)
		terms      int                         // the most that begin
		without    func(p *port) time.Duration // the longest time without a leader; nil: none
		pushed     bool                        // over a store that pushes, only
	}
	abc, abcd := []string{"a", "b", "c"}, []string{"a", "b", "c", "d"}
	for name, c := range map[string]scenario{
		"a member joins":                   {many, abc, abcd, func(p *port) { p.join("d") }, many / 2, (*port).limit, false},
		"a member leaves":                  {many, abcd, abc, func(p *port) { p.leave("d") }, many / 2, (*port).limit, false},
		"a member crashes: its leases end": {many, abc, abc[:2], func(p *port) { p.crash("c") }, many * 6 / 10, (*port).limit, false},
		"a member is cut off for long, and gets its share back": {many, abc, abc, func(p *port) {
			p.crash("c")
			time.Sleep(5 * lease)
			p.spread("a", "b")
			p.member("c").line.Heal()
		}, many, (*port).limit, false},
		// For longer than a seat's lease and shorter than the elections' leases.
		"no member reaches the store": {few, abcd, abcd, func(p *port) {
			p.refuse(true, abcd...)
			time.Sleep(18 * time.Second)
			p.refuse(false, abcd...)
		}, 0, nil, false},
		"a member leaves early, again and again": {few, abc, abc, func(p *port) {
			for range 20 {
				p.join("d")
				time.Sleep(4 * time.Second)
				p.leave("d")
				time.Sleep(time.Second)
			}
		}, 0, nil, true},
		// The seat of a crashed member is held for a while longer. Elections that were handed to
		// the member in that time would have no leader, or one that crashes next.
		"members crash early": {many, abc, abc, func(p *port) {
			for i := range 10 {
				id := fmt.Sprint("d", i)
				p.join(id)
				time.Sleep(4 * time.Second)
				p.crash(id)
				time.Sleep(time.Second)
			}
		}, 0, nil, false},
		// The members end one after another, and come back under other names.
		"a rolling restart": {many, abcd, []string{"a1", "b1", "c1", "d1"}, func(p *port) {
			for _, id := range abcd {
				p.leave(id)
				time.Sleep(5 * time.Second)
				p.join(id + "1")
				time.Sleep(lease)
			}
		}, 4 * 2 * many / 2, func(*port) time.Duration { return time.Second }, true},
	} {
		stores := []func() driver.Store{watched, polled}
		if c.pushed {
			stores = stores[:1]
		}
		scenes{name: {c.elections, func(p *port) {
			p.join(c.begin...)
			p.rest(c.begin...)
			p.forget()
			c.happens(p)
			p.rest(c.end...)
			var without time.Duration
			if c.without != nil {
				without = c.without(p)
			}
			p.after(c.terms, without)
		}}}.play(t, stores...)
	}
}

func TestFleet(t *testing.T) {
	all := scenes{
		"members that start together": {many, func(p *port) {
			p.join("a", "b", "c")
			p.rest("a", "b", "c")
			if n, _ := p.moved(); n != len(p.names) {
				p.t.Errorf("%d terms were begun to spread %d elections", n, len(p.names))
			}
		}},
		// The others look for its renewal soon, even without pushes.
		"a joining member counts soon": {few, func(p *port) {
			const presence, settle = lease / 2, 5 * time.Second
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
		}},
		"the last member leads all": {30, func(p *port) {
			p.join("a")
			p.rest("a")
			p.join("b")
			time.Sleep(calm)
			p.leave("a")
			p.rest("b")
			before := time.Now()
			p.leave("b")
			if took := time.Since(before); took > 3*time.Second {
				p.t.Errorf("the last one took %v to end", took)
			}
			if n := p.leads(); len(n) > 0 {
				p.t.Errorf("they lead still: %v", n)
			}
		}},
		"more members than elections": {3, func(p *port) {
			p.join("a", "b", "c", "d", "e", "f")
			p.rest("a", "b", "c", "d", "e", "f")
		}},
		"no elections": {0, func(p *port) {
			p.join("a", "b")
			p.rest("a", "b")
			p.leave("a", "b")
		}},
		// Members without a seat lead nothing while members with a seat do. They take over from
		// them.
		"more members than seats": {30, func(p *port) {
			p.joinWith(func(c *fleet.Config) { c.Members = 2 }, "a", "b", "c", "d")
			time.Sleep(calm)
			seated := slices.Collect(maps.Keys(p.leads()))
			if len(seated) != 2 {
				p.t.Fatalf("%v lead", p.leads())
			}
			p.spread(seated...)
			p.crash(seated[0])
			time.Sleep(2 * calm)
			if loads := p.leads(); len(loads) != 2 || loads[seated[0]] > 0 {
				p.t.Errorf("%v lead after %s has crashed", loads, seated[0])
			}
		}},
		// Each sees the other only when both reach the store.
		"members start without the store": {10, func(p *port) {
			p.cutOff = true
			p.join("a", "b")
			time.Sleep(lease)
			p.member("a").line.Heal()
			p.rest("a")
			p.member("b").line.Heal()
			p.rest("a", "b")
		}},
		"Watch yields every change": {10, func(p *port) {
			p.join("a")
			f := p.member("a").fleet
			watched := make(chan fleet.Status)
			var last atomic.Pointer[fleet.Status]
			ctx, stop := context.WithCancel(p.t.Context())
			go func() {
				defer close(watched)
				for s := range f.Watch(ctx) {
					last.Store(&s)
				}
			}()
			for _, change := range []func(){
				func() { p.join("b") }, func() { p.set(p.names[:5], "a", "b") }, func() { p.leave("a") },
			} {
				change()
				for range calm / time.Second {
					time.Sleep(time.Second)
					if synctest.Wait(); !reflect.DeepEqual(*last.Load(), f.Status()) {
						p.t.Errorf("Watch yielded %+v; the status is %+v", *last.Load(), f.Status())
					}
				}
			}
			if s := last.Load(); len(s.Members) > 0 || s.Led > 0 {
				p.t.Errorf("%+v after Run", s)
			}
			stop()
			<-watched
		}},
		"it runs once at a time, and again": {10, func(p *port) {
			p.join("a")
			m := p.member("a")
			time.Sleep(calm)
			if err := m.fleet.Run(p.t.Context(), tenure.Lead(m.lead)); !errors.Is(err, tenure.ErrRunning) {
				p.t.Errorf("a second Run: %v", err)
			}
			p.join("b")
			p.leave("a")
			p.rest("b")
			p.run(m)
			p.rest("a", "b")
		}},
	}
	// A member that is cut off for less than a lease leads on. The others believe that it is gone
	// once its seat is free. They may then move a few elections among themselves, as whenever a
	// member leaves.
	for while, others := range map[time.Duration]int{6 * time.Second: 0, 12 * time.Second: few / 4, 18 * time.Second: few / 4} {
		all[fmt.Sprint("a member is cut off for ", while)] = scene{few, func(p *port) {
			p.join("a", "b", "c")
			time.Sleep(calm)
			p.forget()
			before := p.tokens("c")
			p.refuse(true, "c")
			time.Sleep(while)
			p.refuse(false, "c")
			p.rest("a", "b", "c")
			if after := p.tokens("c"); !maps.Equal(before, after) {
				p.t.Errorf("it led %v, and leads %v", before, after)
			}
			limit := p.limit()
			if others == 0 {
				limit = 0
			}
			p.after(others, limit)
		}}
	}
	all.play(t)
}

func TestSeats(t *testing.T) {
	scenes{
		// Members that count different seats assign elections differently. Still, each election has
		// one leader at a time.
		"different counts keep all elections led": {many, func(p *port) {
			for id, seats := range map[string]int{"a": 1, "b": 4, "c": 64, "d": 1000} {
				p.joinWith(func(c *fleet.Config) { c.Members = seats }, id)
			}
			time.Sleep(calm)
			p.led()
			for _, id := range []string{"d", "c"} {
				p.forget()
				p.crash(id)
				time.Sleep(2 * lease)
				p.led()
				if _, gap := p.moved(); gap > 2*time.Second {
					p.t.Errorf("%s has crashed: an election had no leader for %v", id, gap)
				}
				time.Sleep(calm)
			}
		}},
		// The seats' leases are longer than those of the elections. So elections are taken over
		// from a member that counts as present.
		"a crashed member is replaced while it counts as present": {many, func(p *port) {
			p.joinWith(func(c *fleet.Config) { c.Presence = 4 * lease }, "a", "b", "c", "d")
			p.rest("a", "b", "c", "d")
			p.forget()
			p.crash("d")
			time.Sleep(2 * lease)
			p.led()
			p.after(many/2, 2*time.Second)
		}},
		// A member that is asked for its seat takes it again, and does not count as missing.
		"a hand-over of seats moves nothing": {50, func(p *port) {
			p.join("a", "b", "c")
			time.Sleep(calm)
			p.forget()
			s := p.member("a").fleet.Status()
			for _, m := range s.Members {
				e, err := tenure.New(p.store, fmt.Sprint("test/members/", m.Seat), tenure.Config{})
				if err == nil {
					err = e.HandOver(p.t.Context(), "")
				}
				if err != nil {
					p.t.Fatal(err)
				}
			}
			p.rest("a", "b", "c")
			p.after(0, 0)
			now := p.member("a").fleet.Status()
			for i, m := range now.Members {
				if m.Seat != s.Members[i].Seat || m.ID != s.Members[i].ID || m.Term <= s.Members[i].Term || !m.Counts {
					p.t.Errorf("%+v was %+v", m, s.Members[i])
				}
			}
		}},
	}.play(t, watched)
}
