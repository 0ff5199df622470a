package faults

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// assemble returns a wrapper with the interfaces Watcher, Bounded and Inspector of the inner store.
// Callers find them by type assertion, so each combination is a type of its own.
func assemble(c *core, inner driver.Store) Store {
	w, watches := inner.(driver.Watcher)
	b, bounds := inner.(driver.Bounded)
	i, inspects := inner.(driver.Inspector)
	watch, inspect := watcher{c, w}, inspector{c, i}
	switch {
	case watches && bounds && inspects:
		return struct {
			*core
			driver.Watcher
			driver.Bounded
			driver.Inspector
		}{c, watch, b, inspect}
	case watches && bounds:
		return struct {
			*core
			driver.Watcher
			driver.Bounded
		}{c, watch, b}
	case watches && inspects:
		return struct {
			*core
			driver.Watcher
			driver.Inspector
		}{c, watch, inspect}
	case bounds && inspects:
		return struct {
			*core
			driver.Bounded
			driver.Inspector
		}{c, b, inspect}
	case watches:
		return struct {
			*core
			driver.Watcher
		}{c, watch}
	case bounds:
		return struct {
			*core
			driver.Bounded
		}{c, b}
	case inspects:
		return struct {
			*core
			driver.Inspector
		}{c, inspect}
	}
	return c
}

// inspector calls the inner store. Only a partition blocks it.
type inspector struct {
	c     *core
	inner driver.Inspector
}

func (i inspector) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	if i.c.partitioned.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return i.inner.Inspect(ctx, lease)
}
