package slots_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/slots"
)

// deaf is a store that cannot be read under some keys. Writes work, so a member can renew a slot
// and know nothing of the others.
type deaf struct {
	driver.Store

	mu   sync.Mutex
	keys []string
}

func (d *deaf) to(keys ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = keys
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
	const left = lease + finishWithin + time.Second
	scenes{
		"a leader that sees a lower slot no longer leaves": func(p *pool) {
			p.join(4, ids("m", 4)...)
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
