package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// store is a sound store whose methods a test can replace.
type store struct {
	*memory.Store
	cut   atomic.Bool
	onCut func(bool) // instead of hanging
	read  func(ctx context.Context, key string) (driver.Entry, error)
	swap  func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error)
	watch func(ctx context.Context, key string, see func(driver.Entry)) (func(), error)
	purge func(key string)
	// rights answers CheckRights.
	rights func(ctx context.Context, key string) error
	// list changes the answer of Keys unless it is nil.
	list func(keys []string) []string
	// present changes the answer of Candidates unless it is nil. Stays keeps those that have gone.
	present func(all [][]byte) [][]byte
	stays   bool

	denied   driver.Store
	minLease time.Duration
	findings []driver.Finding
}

func sound() *store {
	m := memory.New()
	return &store{
		Store: m, read: m.Read, swap: m.CompareAndSwap, watch: m.Watch, purge: m.Purge,
		rights: func(context.Context, string) error { return nil },
		denied: deniedStore{}, minLease: m.MinLease(),
		findings: []driver.Finding{{Severity: driver.Unsafe, Setting: "setting", Problem: "problem", Remedy: "remedy"}},
	}
}

func (s *store) MinLease() time.Duration { return s.minLease }

func (s *store) CheckRights(ctx context.Context, key string) error { return s.rights(ctx, key) }

func (s *store) Keys(ctx context.Context) ([]string, error) {
	all, err := s.Store.Keys(ctx)
	if s.list != nil {
		all = s.list(all)
	}
	return all, err
}

func (s *store) Announce(ctx context.Context, key string, who func() []byte) (func(), error) {
	stop, err := s.Store.Announce(ctx, key, who)
	if s.stays {
		return func() {}, err
	}
	return stop, err
}

func (s *store) Candidates(ctx context.Context, key string) ([][]byte, error) {
	all, err := s.Store.Candidates(ctx, key)
	if s.present != nil {
		all = s.present(all)
	}
	return all, err
}

func (s *store) Inspect(context.Context, time.Duration) ([]driver.Finding, error) {
	return s.findings, nil
}

func (s *store) Read(ctx context.Context, key string) (driver.Entry, error) {
	if err := s.reach(ctx); err != nil {
		return driver.Entry{}, err
	}
	return s.read(ctx, key)
}

func (s *store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := s.reach(ctx); err != nil {
		return "", err
	}
	return s.swap(ctx, key, prev, value)
}

func (s *store) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	return s.watch(ctx, key, see)
}

func (s *store) reach(ctx context.Context) error {
	if s.onCut == nil && s.cut.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (s *store) harness() Harness {
	return Harness{
		Store:  s,
		Peer:   s,
		Denied: s.denied,
		Delete: func(_ context.Context, key string) error { s.Delete(key); return nil },
		Purge:  func(_ context.Context, key string) error { s.purge(key); return nil },

		Recreate: func(context.Context) error { s.Recreate(); return nil },

		Cut: func() func() {
			s.setCut(true)
			return func() { s.setCut(false) }
		},
		Watches: 200,
	}
}

func (s *store) setCut(cut bool) {
	s.cut.Store(cut)
	if s.onCut != nil {
		s.onCut(cut)
	}
}

type deniedStore struct{}

func (deniedStore) Read(context.Context, string) (driver.Entry, error) {
	return driver.Entry{}, fmt.Errorf("read: %w", driver.ErrDenied)
}

func (deniedStore) CompareAndSwap(context.Context, string, driver.Version, []byte) (driver.Version, error) {
	return "", fmt.Errorf("swap: %w", driver.ErrDenied)
}

func (deniedStore) CheckRights(context.Context, string) error {
	return fmt.Errorf("check: %w", driver.ErrDenied)
}

// breakage is a fault that real adapters have, with the cases that must notice it.
type breakage struct {
	name   string
	fails  []string
	damage func(*store)
}

func broken() []breakage {
	return slices.Concat(brokenCalls(), brokenAbsences(), brokenAbilities(), brokenWatches())
}

func brokenCalls() []breakage {
	return []breakage{
		{"swap checks and then acts",
			[]string{"one swap wins a race", "one create wins a race", "no update is lost"}, checkThenAct},
		{"swap never checks", []string{
			"second create conflicts", "empty version is never that of a live cell", "swap from an old version conflicts",
			"swap from the version of another key conflicts", "swap from an unknown version is not applied",
			"pristine is claimed once",
		}, neverChecks},
		{"conflict is some error",
			[]string{"second create conflicts", "swap from an old version conflicts"}, conflictIsSomeError},
		{"versions go round", []string{"versions never recur"}, versionsGoRound},
		{"versions follow from bytes", []string{"the same bytes again are another version"}, versionsOfBytes},
		{"some writes are not applied",
			[]string{"one swap wins a race", "versions never recur", "swap from the current version applies"}, forgetsWrites},
		{"hasty writes are not applied",
			[]string{"deadlines do not lose acknowledged writes", "swap after the end of its context applies nothing"}, forgetsHastyWrites},
		{"swaps ignore that their context has ended",
			[]string{"swap after the end of its context applies nothing"}, ignoresEnd},
		{"calls ignore their context",
			[]string{"ended context ends a read", "swap after the end of its context applies nothing"}, ignoresContext},
		{"calls ignore the context in an outage",
			[]string{"calls end with their context when the network is gone"}, ignoresContextWhenCut},
		{"calls leave work behind", []string{"calls leave nothing behind when the network is gone"}, leavesWork},
		{"an open outcome is a conflict",
			[]string{"swap after the end of its context applies nothing", "calls end with their context when the network is gone"}, openIsConflict},
		{"values are trimmed", []string{"values are kept byte for byte"}, trimsValues},
		{"values are cut short", []string{"values are kept byte for byte"}, shortensValues},
		{"values are shared", []string{"values are copied in and out"}, sharesValues},
		{"keys end at a dot", []string{"keys are distinct", "watch is of one key"}, keysEndAtDot},
		{"keys have no case", []string{"keys are distinct"}, keysWithoutCase},
	}
}

func checkThenAct(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Store.Read(ctx, key); err != nil || e.Version != prev {
			return "", errors.Join(err, driver.ErrConflict)
		}
		time.Sleep(time.Millisecond)
		return s.Put(key, value), nil
	}
}

func neverChecks(s *store) {
	s.swap = func(_ context.Context, key string, _ driver.Version, value []byte) (driver.Version, error) {
		return s.Put(key, value), nil
	}
}

func conflictIsSomeError(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		v, err := s.Store.CompareAndSwap(ctx, key, prev, value)
		if err != nil {
			err = errors.New("precondition failed")
		}
		return v, err
	}
}

// renamed gives a store other names for its versions. It accepts any version with the right name.
func renamed(s *store, name func(driver.Entry) driver.Version) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		if !e.Absent() {
			e.Version = name(e)
		}
		return e, err
	}
	var mu sync.Mutex
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		mu.Lock()
		defer mu.Unlock()
		if e, err := s.read(ctx, key); err != nil || e.Version != prev {
			return "", errors.Join(err, driver.ErrConflict)
		}
		s.Put(key, value)
		e, err := s.read(ctx, key)
		return e.Version, err
	}
}

func versionsGoRound(s *store) {
	renamed(s, func(e driver.Entry) driver.Version { return driver.Version(fmt.Sprint(e.Floor % 50)) })
}

func versionsOfBytes(s *store) {
	renamed(s, func(e driver.Entry) driver.Version {
		h := fnv.New64a()
		h.Write(e.Value)
		return driver.Version(fmt.Sprint(h.Sum64()))
	})
}

// forgetsWrites acknowledges every third write without applying it.
func forgetsWrites(s *store) {
	var n atomic.Int64
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if i := n.Add(1); i%3 == 0 {
			return driver.Version(fmt.Sprintf("lost%d", i)), nil
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

func forgetsHastyWrites(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(end) < time.Millisecond {
			return "soon", nil
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

func ignoresContext(s *store) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		if ctx.Err() != nil {
			time.Sleep(time.Minute)
		}
		return s.Store.Read(context.WithoutCancel(ctx), key)
	}
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if ctx.Err() != nil {
			time.Sleep(time.Minute)
		}
		return s.Store.CompareAndSwap(context.WithoutCancel(ctx), key, prev, value)
	}
}

// ignoresEnd applies a write even if its context has ended, and hides that it did.
func ignoresEnd(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		v, err := s.Store.CompareAndSwap(context.WithoutCancel(ctx), key, prev, value)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return v, err
	}
}

// outage gives a store another behavior while the network is cut.
func outage(s *store, behave func(ctx context.Context) error) {
	var down atomic.Bool
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		if down.Load() {
			return driver.Entry{}, behave(ctx)
		}
		return s.Store.Read(ctx, key)
	}
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if down.Load() {
			return "", behave(ctx)
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
	s.onCut = down.Store
}

func ignoresContextWhenCut(s *store) {
	outage(s, func(context.Context) error {
		time.Sleep(time.Minute)
		return errors.New("timeout")
	})
}

func leavesWork(s *store) {
	outage(s, func(ctx context.Context) error {
		go time.Sleep(time.Hour)
		<-ctx.Done()
		return ctx.Err()
	})
}

func openIsConflict(s *store) {
	outage(s, func(ctx context.Context) error {
		<-ctx.Done()
		return driver.ErrConflict
	})
	swap := s.swap
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		v, err := swap(ctx, key, prev, value)
		if ctx.Err() != nil {
			err = driver.ErrConflict
		}
		return v, err
	}
}

func rewrites(s *store, change func([]byte) []byte) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		return s.Store.CompareAndSwap(ctx, key, prev, change(value))
	}
}

func trimsValues(s *store) { rewrites(s, bytes.TrimSpace) }

func shortensValues(s *store) {
	rewrites(s, func(value []byte) []byte { return value[:min(len(value), 4095)] })
}

func sharesValues(s *store) {
	var kept sync.Map
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		v, err := s.Store.CompareAndSwap(ctx, key, prev, value)
		kept.Store(v, value)
		return v, err
	}
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		if value, ok := kept.Load(e.Version); ok {
			e.Value = value.([]byte)
		}
		return e, err
	}
}

// alias maps several keys to one cell.
func alias(s *store, name func(key string) string) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) { return s.Store.Read(ctx, name(key)) }
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		return s.Store.CompareAndSwap(ctx, name(key), prev, value)
	}
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		return s.Store.Watch(ctx, name(key), see)
	}
}

func keysEndAtDot(s *store) {
	alias(s, func(key string) string {
		before, _, _ := strings.Cut(key, ".")
		return before + "_"
	})
}

func keysWithoutCase(s *store) { alias(s, strings.ToLower) }

const writesNothing = "asking for the right to write writes nothing"

func brokenAbilities() []breakage {
	return []breakage{
		{"rights are not checked", []string{"denied client learns that it is denied"}, func(s *store) { s.denied = s.Store }},
		{"rights are found out by a write", []string{writesNothing}, func(s *store) {
			s.rights = func(ctx context.Context, key string) error {
				e, err := s.Store.Read(ctx, key)
				if err == nil {
					_, err = s.Store.CompareAndSwap(ctx, key, e.Version, []byte("may I?"))
				}
				return err
			}
		}},
		{"rights are never missing", []string{writesNothing}, func(s *store) {
			s.denied = &store{rights: func(context.Context, string) error { return nil }}
		}},
		{"rights are always missing", []string{writesNothing}, func(s *store) {
			s.rights = func(context.Context, string) error { return driver.ErrDenied }
		}},
		{"no shortest lease", []string{"bounds are usable"}, func(s *store) { s.minLease = 0 }},
		{"a list in no order", []string{listsKeys}, func(s *store) {
			s.list = func(keys []string) []string { return append(keys, "a") }
		}},
		{"a list with a key twice", []string{listsKeys}, func(s *store) {
			s.list = func(keys []string) []string { return append(keys, keys[len(keys)-1]) }
		}},
		{"a list without the last key", []string{listsKeys}, func(s *store) {
			s.list = func(keys []string) []string { return keys[:max(len(keys)-1, 0)] }
		}},
		{"a list with keys that were deleted", []string{listsKeys}, listsAllEver},
		{"candidates of all keys answer", []string{answerWhenAsked}, func(s *store) {
			s.present = func([][]byte) [][]byte { all, _ := s.Store.Candidates(context.Background(), ""); return all }
		}},
		{"only one candidate answers", []string{answerWhenAsked}, func(s *store) {
			s.present = func(all [][]byte) [][]byte { return all[:min(len(all), 1)] }
		}},
		{"candidates answer when they have gone", []string{answerWhenAsked}, func(s *store) { s.stays = true }},
		{"a finding without remedy", []string{"findings are complete"}, func(s *store) { s.findings[0].Remedy = "" }},
		{"refused keys end up elsewhere", []string{"refused keys change no other cell"}, refusedKeysElsewhere},
	}
}

const answerWhenAsked = "candidates answer when they are asked"

const listsKeys = "the list has the keys with a value"

func listsAllEver(s *store) {
	var mu sync.Mutex
	ever := map[string]bool{}
	s.list = func(keys []string) []string {
		mu.Lock()
		defer mu.Unlock()
		for _, key := range keys {
			ever[key] = true
		}
		return slices.Sorted(maps.Keys(ever))
	}
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		mu.Lock()
		defer mu.Unlock()
		ever[key] = true
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

func refusedKeysElsewhere(s *store) {
	last := ""
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if s.CheckKey(key) != nil {
			key = last
		}
		last = key
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}
