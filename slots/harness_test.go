package slots_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/slots"
)

// Virtual time costs nothing.
const (
	lease        = 12 * time.Second
	finishWithin = 5 * time.Second
	// late is the longest delay of a push by the faults of these tests.
	late = 2 * time.Second
)

// scenes are tests, each with the property that it shows.
type scenes map[string]func(p *pool)

// play plays each scene in a synctest bubble, over a store that pushes and one that must be polled.
func (all scenes) play(t *testing.T) {
	for name, s := range all {
		for kind, open := range map[string]func() driver.Store{"pushed": watched, "polled": polled} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s(newPool(t, open())) })
			})
		}
	}
}

func watched() driver.Store { return memory.New() }
func polled() driver.Store  { return memory.NewPolled() }

// pool holds the members of one test, and judges the leaders.
type pool struct {
	t     *testing.T
	store driver.Store
	// work is the work of all members; nil waits until it is asked to finish.
	work tenure.Lead

	mu      sync.Mutex
	members map[string]*member
	terms   []held // whose work has not returned
}

// held is a term as the judge knows it.
type held struct {
	by     string
	slot   int
	size   int // the number of slots of that member
	at     time.Time
	term   *tenure.Term
	leased context.Context
}

func newPool(t *testing.T, store driver.Store) *pool {
	p := &pool{t: t, store: store, members: map[string]*member{}}
	ctx, stop := context.WithCancel(context.Background())
	judged := make(chan struct{})
	go func() {
		defer close(judged)
		p.judge(ctx)
	}()
	t.Cleanup(func() {
		p.close()
		stop()
		<-judged
	})
	return p
}

// member is one process.
type member struct {
	id   string
	pool *pool
	size int
	*slots.Member
	line faults.Store
	deaf *deaf
	stop context.CancelFunc
	done chan error
}

func (p *pool) pushed() bool { return driver.AbilitiesOf(p.store).Watcher != nil }

// join starts members that go by this number of slots.
func (p *pool) join(size int, ids ...string) {
	p.t.Helper()
	p.joinWith(func(*slots.Config) {}, size, ids...)
}

func (p *pool) joinWith(change func(*slots.Config), size int, ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		cfg := slots.Config{Election: tenure.Config{ID: id, Lease: lease, FinishWithin: finishWithin}, Slots: size}
		change(&cfg)
		m := &member{id: id, pool: p, size: cfg.Slots, line: faults.New(p.store, 1, faults.Plan{}), done: make(chan error, 1)}
		m.deaf = &deaf{Store: m.line}
		var err error
		if m.Member, err = slots.New(m.deaf, "test", cfg); err != nil {
			p.t.Fatal(err)
		}
		var ctx context.Context
		ctx, m.stop = context.WithCancel(context.Background())
		p.mu.Lock()
		p.members[id] = m
		p.mu.Unlock()
		go func() { m.done <- m.Run(ctx, tenure.Lead(m.lead)) }()
	}
}

// lead is the work of one term.
func (m *member) lead(ctx context.Context, t *tenure.Term) error {
	p := m.pool
	p.begin(held{m.id, slots.Number(t), m.size, time.Now(), t, t.LeaseContext()})
	defer p.end(t)
	if p.work != nil {
		return p.work(ctx, t)
	}
	<-ctx.Done()
	return nil
}

func (p *pool) begin(h held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terms = append(p.terms, h)
	p.check()
}

// begun returns the terms whose work has not returned.
func (p *pool) begun() []held {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.terms)
}

func (p *pool) end(t *tenure.Term) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terms = slices.DeleteFunc(p.terms, func(h held) bool { return h.term == t })
}

// judge checks the leaders all the time.
func (p *pool) judge(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			p.mu.Lock()
			p.check()
			p.mu.Unlock()
		case <-ctx.Done():
		}
	}
}

// settled is the time in which the promise allows leaders above a smaller number of slots.
const settled = lease + finishWithin + late + 100*time.Millisecond

// check fails the test if the promise is broken at this moment. It asks no term, because the
// question itself would make a late election notice its end.
func (p *pool) check() {
	var leaders []held
	for _, h := range p.terms {
		if h.leased.Err() == nil {
			leaders = append(leaders, h)
		}
	}
	for _, h := range leaders {
		for _, other := range leaders {
			switch {
			case other.term != h.term && other.slot == h.slot:
				p.t.Errorf("slot %d: %s leads while %s does", h.slot, h.by, other.by)
			case h.slot > h.size:
				p.t.Errorf("slot %d: %s leads, and has %d slots", h.slot, h.by, h.size)
			case other.slot > h.size && time.Since(h.at) > settled:
				p.t.Errorf("slot %d: %s leads, and %s, which has %d slots, has led slot %d for %v",
					other.slot, other.by, h.by, h.size, h.slot, time.Since(h.at))
			}
		}
	}
}

// leads returns the leader of each slot now.
func (p *pool) leads() map[int]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[int]string{}
	for _, h := range p.terms {
		if h.leased.Err() == nil {
			all[h.slot] = h.by
		}
	}
	return all
}

// led fails the test unless exactly the slots from 1 to size have leaders. Each member leads at
// most one, or perMember.
func (p *pool) led(size int, perMember ...int) {
	p.t.Helper()
	most := max(1, slices.Max(append(perMember, 1)))
	leads := p.leads()
	counts := map[string]int{}
	for slot, by := range leads {
		if counts[by]++; counts[by] > most {
			p.t.Errorf("%s leads %d slots", by, counts[by])
		}
		if slot > size {
			p.t.Errorf("slot %d is led", slot)
		}
	}
	if len(leads) != size {
		p.t.Errorf("%d slots are led, not %d: %v", len(leads), size, leads)
	}
	if p.t.Failed() {
		for _, id := range slices.Sorted(maps.Keys(p.members)) {
			p.t.Logf("%s: %+v", id, p.members[id].Status())
		}
	}
}

// rest waits until long after a change.
func (p *pool) rest() { time.Sleep(8 * lease) }

func (p *pool) member(id string) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members[id]
}

// leave ends members gracefully and waits for that.
func (p *pool) leave(ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		p.member(id).stop()
	}
	for _, id := range ids {
		m := p.member(id)
		select {
		case err := <-m.done:
			if err != nil {
				p.t.Errorf("%s: %v", id, err)
			}
		case <-time.After(5 * time.Minute):
			p.t.Fatalf("%s does not end", id)
		}
		p.mu.Lock()
		delete(p.members, id)
		p.mu.Unlock()
	}
}

// leader returns the member that leads a slot.
func (p *pool) leader(slot int) *member {
	p.t.Helper()
	by := p.leads()[slot]
	if by == "" {
		p.t.Fatalf("slot %d has no leader: %v", slot, p.leads())
	}
	return p.member(by)
}

// waiting returns a member that leads no slot.
func (p *pool) waiting() *member {
	p.t.Helper()
	leads := slices.Collect(maps.Values(p.leads()))
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		if !slices.Contains(leads, id) {
			return p.member(id)
		}
	}
	p.t.Fatal("all members lead")
	return nil
}

// within waits until the condition holds, and returns how long that took.
func (p *pool) within(limit time.Duration, what string, holds func() bool) time.Duration {
	p.t.Helper()
	start := time.Now()
	for !holds() {
		if time.Since(start) > limit {
			p.t.Fatalf("not within %v: %s: %v", limit, what, p.leads())
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(start)
}

// close ends all remaining members, within the bubble.
func (p *pool) close() {
	p.mu.Lock()
	left := slices.Collect(maps.Values(p.members))
	p.mu.Unlock()
	for _, m := range left {
		m.stop()
		m.line.Heal()
	}
	for _, m := range left {
		if err := <-m.done; err != nil && !errors.Is(err, context.Canceled) {
			p.t.Errorf("%s: %v", m.id, err)
		}
	}
}

// ids returns n IDs that begin with a text.
func ids(text string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%d", text, i))
	}
	return all
}
