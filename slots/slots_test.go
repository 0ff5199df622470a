package slots_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/slots"
)

func TestSlots(t *testing.T) {
	scenes{
		"members fill the slots, and no more": func(p *pool) {
			p.join(3, ids("m", 8)...)
			p.rest()
			p.led(3)
		},
		"fewer members than slots hold one each": func(p *pool) {
			p.join(5, ids("m", 2)...)
			p.rest()
			if n := len(p.leads()); n != 2 {
				p.t.Errorf("%d slots are led by 2 members", n)
			}
		},
		"a member holds more if it may": func(p *pool) {
			p.joinWith(func(c *slots.Config) { c.PerMember = 2 }, 5, ids("m", 2)...)
			p.rest()
			if n := len(p.leads()); n != 4 {
				p.t.Errorf("%d slots are led by 2 members", n)
			}
			p.joinWith(func(c *slots.Config) { c.PerMember = 2 }, 5, "late")
			p.rest()
			p.led(5, 2)
		},
		"a released slot is taken soon": func(p *pool) {
			p.join(3, ids("m", 5)...)
			p.rest()
			p.leave(p.leader(2).id)
			limit := time.Second
			if !p.pushed() {
				limit = lease + time.Second // the others read so often while all slots are held
			}
			took := p.within(limit, "slot 2 is led again", func() bool { return p.leads()[2] != "" })
			p.t.Logf("after %v", took)
			p.led(3)
		},
		"the slot of a member that crashed is taken": func(p *pool) {
			p.join(3, ids("m", 5)...)
			p.rest()
			crashed := p.leader(2)
			crashed.line.Partition()
			limit := lease + time.Second
			if !p.pushed() {
				limit = 2*lease + time.Second
			}
			took := p.within(limit, "slot 2 is led by another", func() bool { by := p.leads()[2]; return by != "" && by != crashed.id })
			p.t.Logf("after %v", took)
			p.led(3)
		},
		"a hand-over moves a slot to the member that is named": func(p *pool) {
			p.join(3, ids("m", 6)...)
			p.rest()
			to, from := p.waiting(), p.leader(3)
			if err := from.ElectionOf(1).HandOver(context.Background(), to.id); err != nil {
				p.t.Fatal(err)
			}
			p.within(3*lease, "slot 1 moves", func() bool { return p.leads()[1] == to.id })
			p.rest()
			p.led(3)
			if p.leads()[1] != to.id {
				p.t.Errorf("slot 1 has moved on: %v", p.leads())
			}
		},
		"a member that leads one slot is not given another": func(p *pool) {
			p.join(3, ids("m", 4)...)
			p.rest()
			to := p.leader(2)
			if err := to.ElectionOf(1).HandOver(context.Background(), to.id); err != nil {
				p.t.Fatal(err)
			}
			p.rest()
			p.led(3)
			if p.leads()[2] != to.id {
				p.t.Errorf("slot 2 has moved: %v", p.leads())
			}
		},
		"members end, come back and go on": func(p *pool) {
			p.join(2, ids("a", 4)...)
			p.rest()
			p.leave(ids("a", 4)...)
			p.join(2, ids("b", 4)...)
			p.rest()
			p.led(2)
		},
		"an outage that the leases survive moves nothing": func(p *pool) {
			p.join(5, ids("m", 8)...)
			p.rest()
			before := p.begun()
			for range 10 {
				for _, m := range p.members {
					m.line.Partition()
				}
				time.Sleep(lease / 4)
				for _, m := range p.members {
					m.line.Heal()
				}
				p.rest()
			}
			for _, h := range before {
				if h.term.Err() != nil {
					p.t.Errorf("%s has lost slot %d", h.by, h.slot)
				}
			}
			p.led(5)
		},
	}.play(t)
}

func TestNumberOfSlots(t *testing.T) {
	scenes{
		"it shrinks when a member with a smaller one gets a slot": func(p *pool) {
			p.join(5, ids("old", 5)...)
			p.rest()
			p.led(5)
			p.leave(p.leader(1).id)
			p.join(3, "new")
			p.rest()
			p.led(3)
		},
		"a rolling update shrinks it": func(p *pool) {
			p.join(5, ids("old", 7)...)
			p.rest()
			for i, id := range ids("old", 7) {
				p.leave(id)
				p.join(2, ids("new", 7)[i])
				time.Sleep(lease)
			}
			p.rest()
			p.led(2)
		},
		"a rolling update grows it": func(p *pool) {
			p.join(2, ids("old", 7)...)
			p.rest()
			for i, id := range ids("old", 7) {
				p.leave(id)
				p.join(5, ids("new", 7)[i])
				time.Sleep(lease)
				if len(p.leads()) > 2 && p.holdsOld(2) {
					p.t.Errorf("it grows too early: %v", p.leads())
				}
			}
			p.rest()
			p.led(5)
		},
		"it grows when the member with the smaller one has crashed": func(p *pool) {
			p.join(1, "old")
			p.rest()
			p.join(4, ids("new", 6)...)
			p.rest()
			p.led(1)
			p.member("old").line.Partition()
			p.rest()
			p.led(4)
		},
	}.play(t)
}

// holdsOld reports whether a member with this number of slots leads.
func (p *pool) holdsOld(size int) bool {
	for _, by := range p.leads() {
		if p.member(by).size == size {
			return true
		}
	}
	return false
}

func TestEndOfWork(t *testing.T) {
	scenes{
		"work that ends unasked ends Run": func(p *pool) {
			p.work = func(context.Context, *tenure.Term) error { return context.DeadlineExceeded }
			p.join(2, "m")
			err := <-p.member("m").done
			p.member("m").done <- nil
			if !errors.Is(err, context.DeadlineExceeded) {
				p.t.Errorf("%v", err)
			}
		},
		"a member that declines waits": func(p *pool) {
			var began atomic.Int32
			p.work = func(context.Context, *tenure.Term) error { began.Add(1); return tenure.ErrDecline }
			p.join(3, "m")
			time.Sleep(20 * lease)
			if n := began.Load(); n < 2 || n > 8 {
				p.t.Errorf("%d terms in 20 leases", n)
			}
		},
	}.play(t)
}
