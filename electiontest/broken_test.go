package electiontest

import (
	"bytes"
	"context"
	"sync"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
)

// store is a sound store whose methods a test can replace.
type store struct {
	*memory.Store
	read  func(ctx context.Context, key string) (driver.Entry, error)
	swap  func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error)
	watch func(ctx context.Context, key string, see func(driver.Entry)) (func(), error)
}

func sound() *store {
	m := memory.New()
	return &store{Store: m, read: m.Read, swap: m.CompareAndSwap, watch: m.Watch}
}

func (s *store) Read(ctx context.Context, key string) (driver.Entry, error) { return s.read(ctx, key) }

func (s *store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return s.swap(ctx, key, prev, value)
}

func (s *store) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	return s.watch(ctx, key, see)
}

func (s *store) harness() drivertest.Harness {
	return drivertest.Harness{
		Store:  s,
		Peer:   s,
		Delete: func(_ context.Context, key string) error { s.Delete(key); return nil },
		Purge:  func(_ context.Context, key string) error { s.Purge(key); return nil },
	}
}

// breakage is a fault that a store may have, with the cases that must notice it. A case of the
// contract may notice it as well.
type breakage struct {
	name   string
	fails  []string
	damage func(*store)
}

func broken() []breakage {
	return []breakage{
		{"every write conflicts", []string{"a first candidate leads"}, alwaysConflicts},
		{"swap never checks, and others see the first record for ever",
			[]string{"a renewed lease keeps the others out"}, frozenAndUnchecked},
		{"everybody sees the first record for ever", []string{
			"a release lets the next one lead", "a leader hears that it is asked to hand over",
		}, frozen},
		{"the floor stands still", []string{"tokens grow over releases and removals"}, floorStandsStill},
		{"nothing replaces a delete marker", []string{"a removed record ends the term"}, markersStay},
		{"a stranger's bytes read as nothing", []string{"foreign bytes are not overwritten"}, hidesStrangers},
		{"values come back with other words in them", []string{
			"a claim whose answer was lost is recognized", "a claim that was delivered twice is recognized",
		}, changesNonces},
		{"a cell stays with its holder",
			[]string{"a silent leader is replaced, and not too soon"}, cellStaysWithHolder},
	}
}

func alwaysConflicts(s *store) {
	s.swap = func(context.Context, string, driver.Version, []byte) (driver.Version, error) {
		return "", driver.ErrConflict
	}
}

// frozen returns the first value of a key for all reads, and pushes nothing.
func frozen(s *store) {
	var first sync.Map
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		if err != nil || e.Absent() {
			return e, err
		}
		seen, _ := first.LoadOrStore(key, e)
		return seen.(driver.Entry), nil
	}
	s.watch = func(context.Context, string, func(driver.Entry)) (func(), error) { return func() {}, nil }
}

func frozenAndUnchecked(s *store) {
	frozen(s)
	s.swap = func(_ context.Context, key string, _ driver.Version, value []byte) (driver.Version, error) {
		return s.Put(key, value), nil
	}
}

func floorStandsStill(s *store) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		e.Floor = 1
		return e, err
	}
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		return s.Store.Watch(ctx, key, func(e driver.Entry) {
			e.Floor = 1
			see(e)
		})
	}
}

// refuses makes some writes conflict, depending on the present entry and the new value.
func refuses(s *store, against func(now driver.Entry, value []byte) bool) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Store.Read(ctx, key); err != nil || against(e, value) {
			return "", driver.ErrConflict
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

func markersStay(s *store) {
	refuses(s, func(now driver.Entry, _ []byte) bool { return now.Absent() && !now.Pristine && now.Version != "" })
}

func cellStaysWithHolder(s *store) {
	refuses(s, func(now driver.Entry, value []byte) bool {
		holder, err := record.Decode(now.Value)
		next, _ := record.Decode(value)
		return err == nil && holder.Held() && next.Incarnation != holder.Incarnation
	})
}

func hidesStrangers(s *store) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		if !bytes.HasPrefix(e.Value, []byte("{")) {
			e.Value = nil
		}
		return e, err
	}
}

func changesNonces(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		value = bytes.Replace(value, []byte(`"nonce":"`), []byte(`"nonce":"x`), 1)
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}
