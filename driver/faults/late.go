package faults

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
)

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
		c.note(o, landing(v, err))
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
