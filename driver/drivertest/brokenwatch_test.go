package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
)

func brokenWatches() []breakage {
	const end = "nothing is pushed after stop"
	return []breakage{
		{"nothing is pushed",
			[]string{"watch pushes a change as a read shows it", "pushed version can be swapped from"}, pushesNothing},
		{"versions are pushed in another form",
			[]string{"watch pushes a change as a read shows it", "pushed version can be swapped from"}, pushesOtherVersions},
		{"the value before is pushed", []string{"watch pushes a change as a read shows it"}, pushesOldValues},
		{"removals are not pushed", []string{"watch pushes a removal"}, hidesRemovals},
		{"the watch ends with its set-up", []string{"watch outlives the context of its set-up"}, endsWithSetUp},
		{"all keys are pushed", []string{"watch is of one key"}, pushesAllKeys},
		{"watches share a buffer", []string{"pushed values are copies"}, sharesPushes},
		{"a goroutine for each watch", []string{"watches cost no goroutine each"}, goroutineEach},
		{"stop does nothing", []string{end}, stopDoesNothing},
		{"pushes are still queued at stop", []string{end}, pushesLate},
		{"stop ends all watches", []string{"stop ends one watch alone", end}, stopEndsAll},
		{"a second stop hangs", []string{"stop may be called twice"}, secondStopHangs},
		{"stop waits for see", []string{"stop may be called from see"}, stopWaitsForSee},
		{"set-up fails under load", []string{"watches may start and stop while others write"}, failsUnderLoad},
	}
}

// pushing changes the pushes. A nil result of change pushes nothing.
func pushing(s *store, change func(driver.Entry) *driver.Entry) {
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		return s.Store.Watch(ctx, key, func(e driver.Entry) {
			if changed := change(e); changed != nil {
				see(*changed)
			}
		})
	}
}

func pushesNothing(s *store) {
	pushing(s, func(driver.Entry) *driver.Entry { return nil })
}

func pushesOtherVersions(s *store) {
	pushing(s, func(e driver.Entry) *driver.Entry {
		e.Version = "0" + e.Version
		return &e
	})
}

func pushesOldValues(s *store) {
	old := []byte("nothing")
	pushing(s, func(e driver.Entry) *driver.Entry {
		e.Value, old = old, e.Value
		return &e
	})
}

func hidesRemovals(s *store) {
	pushing(s, func(e driver.Entry) *driver.Entry {
		if e.Absent() {
			return nil
		}
		return &e
	})
}

// endsWithSetUp ends the watch at once. If a goroutine stopped it, it might stop after the next
// push.
func endsWithSetUp(s *store) {
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		return s.Store.Watch(ctx, key, func(e driver.Entry) {
			if ctx.Err() == nil {
				see(e)
			}
		})
	}
}

// hub pushes the writes of all keys to every watch.
type hub struct {
	mu   sync.Mutex
	sees []func(key string, e driver.Entry)
}

func newHub(s *store) *hub {
	h := &hub{}
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		v, err := s.Store.CompareAndSwap(ctx, key, prev, value)
		if err == nil {
			h.push(key, driver.Entry{Value: append([]byte(nil), value...), Version: v})
		}
		return v, err
	}
	return h
}

func (h *hub) push(key string, e driver.Entry) {
	h.mu.Lock()
	sees := h.sees
	h.mu.Unlock()
	for _, see := range sees {
		see(key, e)
	}
}

func (h *hub) add(see func(key string, e driver.Entry)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sees = append(h.sees, see)
}

func (h *hub) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sees = nil
}

func pushesAllKeys(s *store) {
	h := newHub(s)
	s.watch = func(_ context.Context, _ string, see func(driver.Entry)) (func(), error) {
		h.add(func(_ string, e driver.Entry) { see(e) })
		return func() {}, nil
	}
}

// onKey returns a see that gets only the entries of one key.
func onKey(key string, see func(driver.Entry)) func(string, driver.Entry) {
	return func(k string, e driver.Entry) {
		if k == key {
			see(e)
		}
	}
}

func sharesPushes(s *store) {
	h := newHub(s)
	s.watch = func(_ context.Context, key string, see func(driver.Entry)) (func(), error) {
		h.add(onKey(key, see))
		return func() {}, nil
	}
}

func stopEndsAll(s *store) {
	h := newHub(s)
	s.watch = func(_ context.Context, key string, see func(driver.Entry)) (func(), error) {
		h.add(onKey(key, see))
		return h.clear, nil
	}
}

func goroutineEach(s *store) {
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		stop, err := s.Store.Watch(ctx, key, see)
		done := make(chan struct{})
		go func() { <-done }()
		return sync.OnceFunc(func() { close(done); stop() }), err
	}
}

func stopDoesNothing(s *store) {
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		_, err := s.Store.Watch(ctx, key, see)
		return func() {}, err
	}
}

// pushesLate stops listening some time after stop.
func pushesLate(s *store) {
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		stop, err := s.Store.Watch(ctx, key, see)
		return func() { time.AfterFunc(time.Millisecond, stop) }, err
	}
}

func secondStopHangs(s *store) {
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		stop, err := s.Store.Watch(ctx, key, see)
		once := make(chan struct{}, 1)
		return func() {
			select {
			case once <- struct{}{}:
				stop()
			case <-time.After(time.Hour):
			}
		}, err
	}
}

// stopWaitsForSee holds a lock during see and takes it in stop.
func stopWaitsForSee(s *store) {
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		lock := make(chan struct{}, 1)
		stop, err := s.Store.Watch(ctx, key, func(e driver.Entry) {
			lock <- struct{}{}
			see(e)
			<-lock
		})
		return func() {
			select {
			case lock <- struct{}{}:
				stop()
				<-lock
			case <-time.After(time.Hour):
			}
		}, err
	}
}

func failsUnderLoad(s *store) {
	busy := make(chan struct{}, 2)
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		select {
		case busy <- struct{}{}:
		default:
			return nil, context.DeadlineExceeded
		}
		defer func() { time.Sleep(time.Millisecond); <-busy }()
		return s.Store.Watch(ctx, key, see)
	}
}

func brokenAbsences() []breakage {
	return []breakage{
		{"absence is an error", []string{"absent key reads as an entry", "create from absent applies"}, absenceIsError},
		{"absence has no version that fits", []string{
			"create from absent applies", "deleted cell is absent and can be claimed again",
			"purged cell is absent and can be claimed again",
		}, absenceFitsNothing},
		{"absence fits everything", []string{
			"no old version fits a deleted cell", "no old version fits a purged cell", "pristine ends with the first write",
			"no old version fits a recreated cell",
		}, absenceFitsAll},
		{"eras are missing", []string{"recreated store has another history"}, noEras},
		{"the era stays", []string{"recreated store has another history"}, oneEra},
		{"a write over a marker is lost", []string{"empty version over a delete marker loses nothing"}, losesOverMarker},
		{"floor is that of the cell", []string{"floor survives a delete", "floor survives a purge"}, floorOfCell},
		{"floor counts too little", []string{
			"floor is never below a term", "watch pushes a change as a read shows it",
		}, floorTooLow},
		{"purged is pristine", []string{"pristine ends with the first write"}, purgedIsPristine},
	}
}

func absenceIsError(s *store) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		if err == nil && e.Absent() {
			err = errors.New("not found")
		}
		return e, err
	}
}

func absenceFitsNothing(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Store.Read(ctx, key); err != nil || e.Absent() {
			return "", errors.Join(err, driver.ErrConflict)
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

func absenceFitsAll(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Store.Read(ctx, key); err == nil && e.Absent() {
			prev = e.Version
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

func losesOverMarker(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Store.Read(ctx, key); err == nil && e.Absent() && prev == "" {
			return "lost", nil
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

// altersReads changes the floor or other fields of an entry, pushed or read.
func altersReads(s *store, change func(key string, e *driver.Entry)) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		change(key, &e)
		return e, err
	}
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		return s.Store.Watch(ctx, key, func(e driver.Entry) {
			change(key, &e)
			see(e)
		})
	}
}

func floorOfCell(s *store) {
	altersReads(s, func(_ string, e *driver.Entry) {
		if e.Absent() {
			e.Floor = 1
		}
	})
}

func floorTooLow(s *store) {
	altersReads(s, func(_ string, e *driver.Entry) { e.Floor = e.Floor/2 + 1 })
}

func purgedIsPristine(s *store) {
	altersReads(s, func(_ string, e *driver.Entry) { e.Pristine = e.Version == "" || e.Pristine })
}

func noEras(s *store) { altersReads(s, func(_ string, e *driver.Entry) { e.Era = 0 }) }

func oneEra(s *store) { altersReads(s, func(_ string, e *driver.Entry) { e.Era = 7 }) }
