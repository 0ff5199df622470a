package rig

import (
	"context"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/memory"
)

// Memory is the store in the memory of one process.
func Memory() Rig {
	return Rig{Name: "memory", Start: func(testing.TB, bool) Site { return inMemory{memory.New()} }}
}

type inMemory struct{ store *memory.Store }

func (m inMemory) Open(testing.TB, int) (driver.Store, Way) { return m.store, nil }
func (inMemory) Faults() []Fault                            { return nil }

func (m inMemory) Kit(testing.TB) drivertest.Harness {
	return drivertest.Harness{
		Delete:   func(_ context.Context, key string) error { m.store.Delete(key); return nil },
		Purge:    func(_ context.Context, key string) error { m.store.Purge(key); return nil },
		Recreate: func(context.Context) error { m.store.Recreate(); return nil },
	}
}
