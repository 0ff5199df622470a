package faults_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// pushed collects the values that a watch receives.
type pushed struct {
	mu     sync.Mutex
	values []string
}

func (h *pushed) see(e driver.Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.values = append(h.values, string(e.Value))
}

func (h *pushed) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.values, " ")
}

func watch(t *testing.T, f faults.Store, see func(driver.Entry)) (stop func()) {
	t.Helper()
	stop, err := driver.AbilitiesOf(f).Watcher.Watch(t.Context(), key, see)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

func TestFaultsOfPushes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script []faults.Fault
		want   string
	}{
		{"none", nil, "1 2 3 4"},
		{"drop", []faults.Fault{faults.Drop, faults.None, faults.Drop}, "2 4"},
		{"delay", []faults.Fault{faults.Delay}, "2 3 4 1"},
		{"double", []faults.Fault{faults.None, faults.Double}, "1 2 2 3 4"},
		{"reorder", []faults.Fault{faults.Reorder}, "2 1 3 4"},
		{"reorder two", []faults.Fault{faults.Reorder, faults.Reorder}, "1 3 2 4"},
		{"reorder past a drop", []faults.Fault{faults.Reorder, faults.Drop}, "3 1 4"},
		{"reorder the last", []faults.Fault{faults.None, faults.None, faults.None, faults.Reorder}, "1 2 3"},
	} {
		inBubble(t, tt.name, fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
			var h pushed
			defer watch(t, f, h.see)()
			f.Next(faults.Push, tt.script...)
			for _, value := range []string{"1", "2", "3", "4"} {
				inner.Put(key, []byte(value))
			}
			f.Wait()
			if got := h.text(); got != tt.want {
				t.Errorf("received %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSilentWatches(t *testing.T) {
	inBubble(t, "after stop", fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
		var h pushed
		stop := watch(t, f, h.see)
		f.Next(faults.Push, faults.Delay, faults.Reorder)
		inner.Put(key, []byte("delayed"))
		inner.Put(key, []byte("held"))
		stop()
		stop()
		inner.Put(key, []byte("after"))
		f.Wait()
		if got := h.text(); got != "" {
			t.Errorf("received %q", got)
		}
	})
	inBubble(t, "in a partition", fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
		var h pushed
		defer watch(t, f, h.see)()
		f.Next(faults.Push, faults.Delay)
		inner.Put(key, []byte("under way"))
		f.Partition()
		inner.Put(key, []byte("cut off"))
		f.Wait()
		f.Heal()
		inner.Put(key, []byte("healed"))
		if got := h.text(); got != "healed" {
			t.Errorf("received %q", got)
		}
	})
}

func TestSetUpOfWatchFails(t *testing.T) {
	for _, tt := range []struct {
		fault faults.Fault
		err   error
		after time.Duration
	}{
		{faults.Fail, faults.ErrInjected, 0},
		{faults.Deny, driver.ErrDenied, 0},
		{faults.HangBefore, context.DeadlineExceeded, limit},
		{faults.DelayBefore, nil, delay},
	} {
		inBubble(t, tt.fault.String(), fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
			f.Next(faults.Watch, tt.fault)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var h pushed
			start := time.Now()
			_, err := driver.AbilitiesOf(f).Watcher.Watch(ctx, key, h.see)
			if took := time.Since(start); !errors.Is(err, tt.err) || took != tt.after {
				t.Errorf("error %v after %v, want %v after %v", err, took, tt.err, tt.after)
			}
			inner.Put(key, []byte("x"))
			if received := h.text() != ""; received != (err == nil) {
				t.Errorf("pushed: %v, with error %v", received, err)
			}
		})
	}
}
