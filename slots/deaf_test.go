package slots_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/slots"
)

// deaf is a store that cannot be read under some keys, so that a member can renew a slot and know
// nothing of the others. Under other keys it refuses writes.
type deaf struct {
	driver.Store

	mu         sync.Mutex
	keys, mute []string
}

func (d *deaf) to(keys ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = keys
}

func (d *deaf) refuse(keys ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mute = keys
}

func (d *deaf) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	d.mu.Lock()
	refused := slices.Contains(d.mute, key)
	d.mu.Unlock()
	if refused {
		return "", faults.ErrInjected
	}
	return d.Store.CompareAndSwap(ctx, key, prev, value)
}

func (d *deaf) hears(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !slices.Contains(d.keys, key)
}

func (d *deaf) Read(ctx context.Context, key string) (driver.Entry, error) {
	if !d.hears(key) {
		<-ctx.Done()
		return driver.Entry{}, context.Cause(ctx)
	}
	return d.Store.Read(ctx, key)
}

func (d *deaf) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(d.Store)
	if a.Watcher != nil {
		a.Watcher = deafWatcher{d, a.Watcher}
	}
	return a
}

type deafWatcher struct {
	d *deaf
	driver.Watcher
}

func (w deafWatcher) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	return w.Watcher.Watch(ctx, key, func(e driver.Entry) {
		if w.d.hears(key) {
			see(e)
		}
	})
}

func keys(numbers ...int) (all []string) {
	for _, n := range numbers {
		all = append(all, slots.Election("test", n))
	}
	return all
}

// TestViews shows what a member does that cannot see the slots below its own.
func TestViews(t *testing.T) {
	const left = lease + 100*time.Millisecond // the work stops when it is asked to
	scenes{
		"a leader that sees a lower slot no longer leaves": func(p *pool) {
			for _, id := range ids("m", 4) { // so that they do not renew at the same moments
				p.join(4, id)
				time.Sleep(lease/3 + 700*time.Millisecond)
			}
			p.rest()
			p.led(4)
			top := p.leader(4)
			top.deaf.to(keys(2)...)
			p.within(left, "slot 4 is left", func() bool { return p.leads()[4] != top.id })
		},
		"a leader that sees no higher slot leads on": func(p *pool) {
			p.join(4, ids("m", 4)...)
			p.rest()
			low := p.leader(2)
			low.deaf.to(keys(3, 4)...)
			p.rest()
			if p.leads()[2] != low.id {
				p.t.Errorf("%s has left slot 2: %v", low.id, p.leads())
			}
		},
		"it leaves in time for a member with fewer slots": func(p *pool) {
			p.join(4, ids("m", 4)...)
			p.rest()
			p.leader(4).deaf.to(keys(1, 2, 3)...)
			p.leave(p.leader(1).id)
			p.join(1, "new")
			p.rest()
			p.led(1)
		},
		"a member claims nothing above a slot that it has never seen": func(p *pool) {
			p.join(1, "new")
			p.rest()
			p.joinWith(func(c *slots.Config) { c.PerMember = 3 }, 4, "m")
			p.member("m").deaf.to(keys(1)...)
			p.rest()
			p.led(1)
		},
		"nor above a slot that it has not seen for a lease": func(p *pool) {
			p.join(1, "new")
			p.rest()
			p.join(4, "m")
			p.rest()
			p.member("m").deaf.to(keys(1)...)
			p.rest()
			p.led(1)
		},
		"the number of a vanished leader stands for one more lease": func(p *pool) {
			p.join(1, "old")
			p.rest()
			p.joinWith(func(c *slots.Config) { c.PerMember = 2 }, 2, "m")
			p.member("m").deaf.refuse(keys(1)...)
			p.rest()
			p.member("old").line.Partition()
			took := p.within(3*lease, "slot 2 is led", func() bool { return p.leads()[2] == "m" })
			if least := 2*lease - lease/3; took < least {
				p.t.Errorf("slot 2 is led %v after the last sign of a member with one slot, less than %v", took, least)
			}
		},
		"bytes that no member can read count as a slot not seen": func(p *pool) {
			p.join(4, ids("m", 4)...)
			p.rest()
			low := p.leader(1)
			low.line.Partition()
			p.write(1, "{damaged")
			p.within(left, "slots 2 to 4 are left", func() bool {
				leads := p.leads()
				return leads[2] == "" && leads[3] == "" && leads[4] == ""
			})
		},
	}.play(t)
}

// write writes bytes over the record of a slot.
func (p *pool) write(slot int, text string) {
	p.t.Helper()
	ctx, key := context.Background(), keys(slot)[0]
	e, err := p.store.Read(ctx, key)
	if err == nil {
		_, err = p.store.CompareAndSwap(ctx, key, e.Version, []byte(text))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
