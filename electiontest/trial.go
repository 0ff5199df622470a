package electiontest

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/internal/test/kit"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// trial is one run of one case.
type trial struct {
	kit.Reporter
	drivertest.Harness
	time kit.Timing
}

func newTrial(r kit.Reporter, h drivertest.Harness, time kit.Timing) *trial {
	return &trial{Reporter: r, Harness: h, time: time}
}

// left returns how long anything may still take that should happen.
func (t *trial) left() time.Duration {
	if t.Patience > 0 {
		return t.Patience
	}
	return t.time.Left()
}

// other is the store as another process has it, so that a lock within one does not hide a race.
func (t *trial) other() driver.Store {
	if t.Peer != nil {
		return t.Peer
	}
	return t.Store
}

// leaseOf returns this lease, or the shortest that the store is for.
func (t *trial) leaseOf(lease time.Duration) time.Duration {
	return max(lease, driver.AbilitiesOf(t.Store).MinLease())
}

// read returns the election's cell.
func (c *contest) read() driver.Entry {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, c.left())
	defer cancel()
	e, err := c.Store.Read(ctx, c.election)
	if err != nil {
		c.Fatalf("read of %q: %v", c.election, err)
	}
	return e
}

// settle reads until the cell is in a state.
func (c *contest) settle(state string, reached func(driver.Entry) bool) {
	c.Helper()
	if !wait.Within(c.left(), func() bool { return reached(c.read()) }) {
		c.Fatalf("%q does not become %s", c.election, state)
	}
}

// removals are the ways of removing the record that the harness has.
func (c *contest) removals() []func() {
	var all []func()
	for _, do := range []func(context.Context, string) error{c.Delete, c.Purge} {
		if do != nil {
			all = append(all, func() { c.remove(do) })
		}
	}
	return all
}

func (c *contest) remove(do func(context.Context, string) error) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, c.left())
	defer cancel()
	if err := do(ctx, c.election); err != nil {
		c.Fatalf("removal of %q: %v", c.election, err)
	}
	c.settle("absent", driver.Entry.Absent)
}
