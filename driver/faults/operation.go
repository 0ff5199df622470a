package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// operation is one call or push and its fault.
type operation struct {
	op      Op
	n       uint64 // within its kind, from 1
	key     string
	fault   Fault
	delay   time.Duration
	timeout time.Duration
	older   driver.Entry // the answer of a stale read
}

// begin numbers an operation and decides its fault. In a partition, it uses no script. It logs only
// the partition itself, because the failed operations would fill the log.
func (c *core) begin(op Op, key string) operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[op]++
	o := operation{op: op, n: c.counts[op], key: key, timeout: c.plan.Timeout}
	r := rand.New(rand.NewPCG(c.seed, uint64(op)<<56|o.n))
	o.fault, o.delay = c.plan.draw(op, r), c.plan.delay(r)
	if c.partitioned.Load() {
		if o.fault = HangBefore; op == Push {
			o.fault = Drop
		}
		return o
	}
	o.fault = c.scripted(op, o.fault)
	if o.fault == Stale && !c.seenStates.older(&o, r) {
		o.fault = None
	}
	if o.fault != None {
		c.log.add(o.String())
	}
	return o
}

// scripted takes the next fault of the script, if there is one, in place of the drawn one. It is
// called under the lock.
func (c *core) scripted(op Op, drawn Fault) Fault {
	script := c.scripts[op]
	if len(script) == 0 {
		return drawn
	}
	c.scripts[op] = script[1:]
	return script[0]
}

// call sends a call to the store, with the faults before and after it.
func (c *core) call(ctx context.Context, o operation, send func() error) error {
	if err := o.beforeCall(ctx); err != nil {
		return err
	}
	if c.partitioned.Load() {
		o.fault = HangBefore
		return o.hang(ctx)
	}
	err := send()
	if o.fault == Replay {
		err = send()
	}
	if lost := o.afterCall(ctx); lost != nil {
		return lost
	}
	if c.partitioned.Load() {
		o.fault = HangAfter
		return o.hang(ctx)
	}
	return err
}

// beforeCall applies a fault on the way to the store. An error means that the request did not
// arrive.
func (o operation) beforeCall(ctx context.Context) error {
	switch o.fault {
	case Fail:
		return o.err(io.ErrUnexpectedEOF)
	case Deny:
		return o.err(driver.ErrDenied)
	case LoseRequest:
		return o.lose(ctx)
	case HangBefore:
		return o.hang(ctx)
	case DelayBefore:
		return o.wait(ctx)
	}
	return nil
}

// afterCall applies a fault on the way back. An error means that the answer did not arrive.
func (o operation) afterCall(ctx context.Context) error {
	switch o.fault {
	case LoseAnswer:
		return o.err(io.ErrUnexpectedEOF)
	case HangAfter:
		return o.hang(ctx)
	case DelayAfter:
		return o.wait(ctx)
	}
	return nil
}

func (o operation) wait(ctx context.Context) error {
	if !sleep(ctx, o.delay) {
		return o.err(ctx.Err())
	}
	return nil
}

func (o operation) hang(ctx context.Context) error {
	<-ctx.Done()
	return o.err(ctx.Err())
}

// lose blocks the caller for the plan's timeout, if it has one.
func (o operation) lose(ctx context.Context) error {
	if o.timeout > 0 && sleep(ctx, o.timeout) {
		return o.err(os.ErrDeadlineExceeded)
	}
	return o.hang(ctx)
}

func (o operation) err(cause error) error {
	return fmt.Errorf("faults: %v: %w: %w", o, ErrInjected, cause)
}

// String returns the operation and its fault, with the delay if it matters.
func (o operation) String() string {
	s := fmt.Sprintf("%v %d of %q: %v", o.op, o.n, o.key, o.fault)
	switch o.fault {
	case DelayBefore, DelayAfter, LandLate, Delay:
		s += " by " + o.delay.String()
	}
	return s
}

// sleep reports whether the time passed before the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}

// maxSeenStates is how many states of a key are kept for stale reads.
const maxSeenStates = 8

// seenStates holds the latest states of each key that were seen, oldest first. No two of them have
// the same version.
type seenStates map[string][]driver.Entry

func (c *core) remember(key string, e driver.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seenStates.add(key, e)
}

func (p seenStates) add(key string, e driver.Entry) {
	seen := p[key]
	for _, old := range seen {
		if old.Version == e.Version {
			return
		}
	}
	if len(seen) == maxSeenStates {
		seen = seen[1:]
	}
	e.Value = bytes.Clone(e.Value)
	p[key] = append(seen, e)
}

// older sets the answer of a stale read: a state that was seen before the last one. It reports
// whether there is one.
func (p seenStates) older(o *operation, r *rand.Rand) bool {
	seen := p[o.key]
	if len(seen) < 2 {
		return false
	}
	o.older = seen[r.IntN(len(seen)-1)]
	o.older.Value = bytes.Clone(o.older.Value)
	return true
}

// lateTimeout bounds a late write, because the context of its caller has ended.
const lateTimeout = 10 * time.Second

// landLate blocks the caller as if the request was lost, and sends the request afterwards. Only
// here may work of a driver outlive its call, because networks do the same.
func (c *core) landLate(ctx context.Context, o operation, prev driver.Version, value []byte) error {
	value = bytes.Clone(value)
	err := o.lose(ctx)
	c.lateActions.after(o.delay, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
		defer cancel()
		v, err := c.inner.CompareAndSwap(ctx, o.key, prev, value)
		c.note(o.String(), landing(v, err))
	})
	return err
}

func landing(v driver.Version, err error) string {
	if err != nil {
		return "landed: " + err.Error()
	}
	return "landed: version " + string(v)
}

// pending counts the late writes and delayed pushes. It needs no goroutine for them.
type pending struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when count falls to 0; made by wait
}

func (p *pending) after(d time.Duration, do func()) {
	p.mu.Lock()
	p.count++
	p.mu.Unlock()
	time.AfterFunc(d, func() {
		defer p.done()
		do()
	})
}

func (p *pending) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count--; p.count == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

func (p *pending) wait() {
	p.mu.Lock()
	if p.count == 0 {
		p.mu.Unlock()
		return
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	<-idle
}

// watcher is the inner Watcher, under faults.
type watcher struct {
	c     *core
	inner driver.Watcher
}

func (w watcher) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := &faultyWatch{c: w.c, key: key, see: see}
	stop := func() {}
	err := w.c.call(ctx, w.c.begin(Watch, key), func() error {
		inner, err := w.inner.Watch(ctx, key, t.push)
		if err == nil {
			stop = inner
		}
		return err
	})
	if err != nil {
		stop() // set up, but the answer was lost in a partition
		return nil, err
	}
	return func() {
		t.stopped.Store(true)
		stop()
	}, nil
}

// faultyWatch is one watch, under faults.
type faultyWatch struct {
	c       *core
	key     string
	see     func(driver.Entry)
	stopped atomic.Bool

	mu   sync.Mutex
	held *driver.Entry // held back by Reorder until the next push is delivered
}

func (t *faultyWatch) push(e driver.Entry) {
	if t.stopped.Load() {
		return
	}
	t.c.remember(t.key, e)
	o := t.c.begin(Push, t.key)
	switch o.fault {
	case Drop:
	case Delay:
		t.c.lateActions.after(o.delay, func() { t.deliver(e) })
	case Reorder:
		t.deliverHeld(&e)
	case Double:
		t.deliver(e)
		fallthrough
	default:
		t.deliver(e)
		t.deliverHeld(nil)
	}
}

// deliverHeld delivers the held entry, if there is one, and holds next instead.
func (t *faultyWatch) deliverHeld(next *driver.Entry) {
	t.mu.Lock()
	held := t.held
	t.held = next
	t.mu.Unlock()
	if held != nil {
		t.deliver(*held)
	}
}

func (t *faultyWatch) deliver(e driver.Entry) {
	if t.stopped.Load() || t.c.partitioned.Load() {
		return
	}
	e.Value = bytes.Clone(e.Value)
	t.see(e)
}
