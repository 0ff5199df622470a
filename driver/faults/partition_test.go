package faults_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestPartitionHangsEveryCall(t *testing.T) {
	calls := map[string]func(context.Context, faults.Store) error{
		"read": func(ctx context.Context, f faults.Store) error {
			_, err := f.Read(ctx, key)
			return err
		},
		"write": func(ctx context.Context, f faults.Store) error {
			_, err := f.CompareAndSwap(ctx, key, "", []byte("x"))
			return err
		},
		"watch": func(ctx context.Context, f faults.Store) error {
			_, err := driver.AbilitiesOf(f).Watcher.Watch(ctx, key, func(driver.Entry) {})
			return err
		},
		"inspect": func(ctx context.Context, f faults.Store) error {
			_, err := driver.AbilitiesOf(f).Inspector.Inspect(ctx, time.Second)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				f := faults.New(inner, 1, faults.Plan{})
				f.Partition()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				start := time.Now()
				time.AfterFunc(limit/2, f.Heal) // too late for this call
				err := call(ctx, f)
				if took := time.Since(start); took != limit || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v after %v", err, took)
				}
				if err := call(t.Context(), f); err != nil {
					t.Errorf("after it healed: %v", err)
				}
			})
		})
	}
}

// A scripted fault must affect the operation that its test means, not one that a partition swallows
// anyway.
func TestPartitionKeepsScripts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faults.New(memory.New(), 1, faults.Plan{})
		f.Next(faults.Write, faults.Deny)
		f.Partition()
		if _, err := swap(f, "", "x"); errors.Is(err, driver.ErrDenied) {
			t.Error("the script ran in the partition")
		}
		f.Heal()
		if _, err := swap(f, "", "x"); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("error %v after it healed", err)
		}
	})
}

func TestPartitionHangsCallsInFlight(t *testing.T) {
	tests := []struct {
		fault   faults.Fault
		why     string
		applied bool
	}{
		{faults.DelayBefore, "the request has not arrived", false},
		{faults.DelayAfter, "the answer has not", true},
	}
	for _, tt := range tests {
		t.Run(tt.fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				f := faults.New(inner, 1, fixed)
				f.Next(faults.Write, tt.fault)
				time.AfterFunc(delay/2, f.Partition)
				took, err := swap(f, "", "x")
				if _, applied := held(t, inner); applied != tt.applied || took != limit || !errors.Is(err, faults.ErrInjected) {
					t.Errorf("applied %v after %v, error %v; %s", applied, took, err, tt.why)
				}
			})
		})
	}
}
