package tenure_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
)

// hooked is a store whose calls a test counts, and delays, fails or changes by hooks that are not
// nil.
type hooked struct {
	driver.Store
	// before is called before each read and write. If it returns an error, that is the answer.
	before func(ctx context.Context, op faults.Op, key string, value []byte) error
	read   func(e *driver.Entry) // called after each read
	wrote  func(key string)      // called after each write that was applied
	// watch and able replace the watch and other abilities. Without watch, there is none if before
	// or read could change what is read.
	watch func(ctx context.Context, key string, see func(driver.Entry)) (func(), error)
	able  func(*driver.Abilities)

	reads, writes atomic.Int64
}

func (h *hooked) Read(ctx context.Context, key string) (driver.Entry, error) {
	h.reads.Add(1)
	if h.before != nil {
		if err := h.before(ctx, faults.Read, key, nil); err != nil {
			return driver.Entry{}, err
		}
	}
	e, err := h.Store.Read(ctx, key)
	if err == nil && h.read != nil {
		h.read(&e)
	}
	return e, err
}

func (h *hooked) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	h.writes.Add(1)
	if h.before != nil {
		if err := h.before(ctx, faults.Write, key, value); err != nil {
			return "", err
		}
	}
	v, err := h.Store.CompareAndSwap(ctx, key, prev, value)
	if err == nil && h.wrote != nil {
		h.wrote(key)
	}
	return v, err
}

func (h *hooked) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(h.Store)
	switch {
	case h.watch != nil:
		a.Watcher = watcher(h.watch)
	case h.read != nil || h.before != nil:
		a.Watcher = nil
	}
	if h.able != nil {
		h.able(&a)
	}
	return a
}

// watcher is a Watcher made of a function.
type watcher func(ctx context.Context, key string, see func(driver.Entry)) (func(), error)

func (w watcher) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return w(ctx, key, see)
}

// peers marks pushes that may not reach all members.
type peers struct{ driver.Watcher }

func (peers) Incarnation(func(uint64) time.Duration) string { return "" }
