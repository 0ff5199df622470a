//go:build unix

package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/doctor"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/driver/race"
)

// turning is a sound store until it ignores conditions.
type turning struct {
	*memory.Store
	careless atomic.Bool
}

func (s *turning) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	for {
		v, err := s.Store.CompareAndSwap(ctx, key, prev, value)
		if !s.careless.Load() || !errors.Is(err, driver.ErrConflict) {
			return v, err
		}
		e, _ := s.Store.Read(ctx, key)
		prev = e.Version
	}
}

// doctor --watch prints all checks once, and then those that changed. The exit code is that of the
// last examination.
func TestDoctorWatch(t *testing.T) {
	place, err := stores.Parse("--store", "nats://host/ELECTIONS")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, out := &turning{Store: memory.New()}, new(guardtest.Output)
		c := new(cobra.Command)
		c.SetContext(ctx)
		c.SetOut(out)
		d := &doctorFlags{place: place, watch: 10 * time.Minute, lease: 15 * time.Second}
		ended := make(chan error, 1)
		go func() {
			ended <- d.repeat(c, &doctor.Doctor{Store: s, Lease: d.lease, Key: race.NewKey()})
		}()
		passes := func() string {
			before := out.String()
			time.Sleep(10*time.Minute + time.Second)
			synctest.Wait()
			return strings.TrimPrefix(out.String(), before)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !strings.Contains(out.String(), "conditional writes  ok: ") || !strings.Contains(out.String(), "left in the store: tenure-doctor.") {
			t.Errorf("at first:\n%s", out)
		}
		if text := passes(); text != "" {
			t.Errorf("without a change:\n%s", text)
		}
		s.careless.Store(true)
		if text := passes(); !strings.Contains(text, "conditional writes  unsafe: ") || strings.Contains(text, "settings") {
			t.Errorf("after a change:\n%s", text)
		}
		cancel()
		if err := <-ended; fault.Code(err) != fault.UnsafeStore {
			t.Errorf("ended with %v", err)
		}
	})
}

// An examination that is cut short has no verdict.
func TestDoctorInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for want, last := range map[int]*doctor.Report{
		fault.Failed: nil, fault.Done: {Verdict: doctor.OK}, fault.NotConfirmed: {Verdict: doctor.Unknown}, fault.UnsafeStore: {Verdict: doctor.Unsafe},
	} {
		if err := exit(ctx, last); fault.Code(err) != want {
			t.Errorf("%v: %v", last, err)
		}
	}
}
