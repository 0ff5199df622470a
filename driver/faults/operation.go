package faults

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
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
		o.fault = partitionFault(op)
		return o
	}
	o.fault = c.scripted(op, o.fault)
	if o.fault == Stale && !c.seenStates.older(&o, r) {
		o.fault = None
	}
	if o.fault != None {
		c.log.add(o, "")
	}
	return o
}

// partitionFault returns the fault of every operation of a kind in a partition.
func partitionFault(op Op) Fault {
	if op == Push {
		return Drop
	}
	return HangBefore
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
