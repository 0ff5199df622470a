package faults

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

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
