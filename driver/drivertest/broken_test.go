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

// store is a sound store. Breakages replace its fields.
type store struct {
	*memory.Store
	cut     atomic.Bool
	whenCut func(context.Context) error // in place of calls while the network is cut
	read    func(ctx context.Context, key string) (driver.Entry, error)
	swap    func(write) (driver.Version, error)
	watch   func(watch) (func(), error)
	purge   func(key string)
	rights  func(ctx context.Context, key string) error
	list    func(keys []string) []string   // changes the answer of Keys
	present func(all [][]byte) [][]byte    // changes the answer of Candidates
	gone    func(stop func()) (end func()) // changes the end of Announce

	denied   driver.Store
	minLease time.Duration
	findings []driver.Finding
}

// write is one call of CompareAndSwap.
type write struct {
	ctx   context.Context
	key   string
	prev  driver.Version
	value []byte
}

// watch is one call of Watch.
type watch struct {
	ctx context.Context
	key string
	see func(driver.Entry)
}

func sound() *store {
	m := memory.New()
	s := &store{
		Store: m, read: m.Read, purge: m.Purge, denied: deniedStore{}, minLease: m.MinLease(),
		whenCut:  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		rights:   func(context.Context, string) error { return nil },
		list:     func(keys []string) []string { return keys },
		present:  func(all [][]byte) [][]byte { return all },
		gone:     func(stop func()) func() { return stop },
		findings: []driver.Finding{{Severity: driver.Unsafe, Setting: "setting", Problem: "problem", Remedy: "remedy"}},
	}
	s.swap, s.watch = s.apply, s.listen
	return s
}

// apply is a sound CompareAndSwap, listen a sound Watch, and now a sound Read.
func (s *store) apply(w write) (driver.Version, error) {
	return s.Store.CompareAndSwap(w.ctx, w.key, w.prev, w.value)
}

func (s *store) listen(w watch) (func(), error) { return s.Store.Watch(w.ctx, w.key, w.see) }

func (s *store) now(key string) driver.Entry {
	e, _ := s.Store.Read(context.Background(), key)
	return e
}

func (s *store) MinLease() time.Duration { return s.minLease }

func (s *store) CheckRights(ctx context.Context, key string) error { return s.rights(ctx, key) }

func (s *store) Keys(ctx context.Context) ([]string, error) {
	all, err := s.Store.Keys(ctx)
	return s.list(all), err
}

func (s *store) Announce(ctx context.Context, key string, who func() []byte) (func(), error) {
	stop, err := s.Store.Announce(ctx, key, who)
	return s.gone(stop), err
}

func (s *store) Candidates(ctx context.Context, key string) ([][]byte, error) {
	all, err := s.Store.Candidates(ctx, key)
	return s.present(all), err
}

func (s *store) Inspect(context.Context, time.Duration) ([]driver.Finding, error) {
	return s.findings, nil
}

func (s *store) Read(ctx context.Context, key string) (driver.Entry, error) {
	if s.cut.Load() {
		return driver.Entry{}, s.whenCut(ctx)
	}
	return s.read(ctx, key)
}

func (s *store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if s.cut.Load() {
		return "", s.whenCut(ctx)
	}
	return s.swap(write{ctx, key, prev, value})
}

func (s *store) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	return s.watch(watch{ctx, key, see})
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
			s.cut.Store(true)
			return func() { s.cut.Store(false) }
		},
		Watches: 200,
	}
}

type deniedStore struct{}

func (deniedStore) Read(context.Context, string) (driver.Entry, error) {
	return driver.Entry{}, fmt.Errorf("read: %w", driver.ErrDenied)
}

func (deniedStore) CompareAndSwap(context.Context, string, driver.Version, []byte) (driver.Version, error) {
	return "", fmt.Errorf("swap: %w", driver.ErrDenied)
}

func (deniedStore) Keys(context.Context) ([]string, error) { return nil, errors.ErrUnsupported }

func (deniedStore) Inspect(context.Context, time.Duration) ([]driver.Finding, error) { return nil, nil }

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
	return slices.Concat(brokenCalls(), brokenValues(), brokenAbsences(), brokenAbilities(), brokenWatches())
}

// swapping replaces CompareAndSwap, and changing its arguments.
func swapping(do func(*store, write) (driver.Version, error)) func(*store) {
	return func(s *store) { s.swap = func(w write) (driver.Version, error) { return do(s, w) } }
}

func changing(change func(*store, *write)) func(*store) {
	return swapping(func(s *store, w write) (driver.Version, error) {
		change(s, &w)
		return s.apply(w)
	})
}

// outage replaces the behavior of calls while the network is cut.
func outage(behave func(context.Context) error) func(*store) {
	return func(s *store) { s.whenCut = behave }
}

const (
	lateSwap = "swap after the end of its context applies nothing"
	cutEnds  = "calls end with their context when the network is gone"
)

func brokenCalls() []breakage {
	return []breakage{
		{"swap checks and then acts", []string{"one swap wins a race", "one create wins a race", "no update is lost"},
			swapping(func(s *store, w write) (driver.Version, error) {
				if s.now(w.key).Version != w.prev {
					return "", driver.ErrConflict
				}
				time.Sleep(time.Millisecond)
				return s.Put(w.key, w.value), nil
			})},
		{"swap never checks", []string{
			"second create conflicts", "empty version is never that of a live cell", "swap from an old version conflicts",
			"swap from the version of another key conflicts", "swap from an unknown version is not applied",
			"pristine is claimed once",
		}, swapping(func(s *store, w write) (driver.Version, error) { return s.Put(w.key, w.value), nil })},
		{"conflict is some error", []string{"second create conflicts", "swap from an old version conflicts"},
			swapping(func(s *store, w write) (driver.Version, error) {
				v, err := s.apply(w)
				if err != nil {
					err = errors.New("precondition failed")
				}
				return v, err
			})},
		{"versions go round", []string{"versions never recur"},
			renamed(func(e driver.Entry) driver.Version { return driver.Version(fmt.Sprint(e.Floor % 50)) })},
		{"versions follow from bytes", []string{"the same bytes again are another version"},
			renamed(func(e driver.Entry) driver.Version {
				h := fnv.New64a()
				h.Write(e.Value)
				return driver.Version(fmt.Sprint(h.Sum64()))
			})},
		{"some writes are not applied",
			[]string{"one swap wins a race", "versions never recur", "swap from the current version applies"}, forgetsWrites},
		{"hasty writes are not applied", []string{"deadlines do not lose acknowledged writes", lateSwap},
			swapping(func(s *store, w write) (driver.Version, error) {
				if end, ok := w.ctx.Deadline(); w.ctx.Err() != nil || ok && time.Until(end) < time.Millisecond {
					return "soon", nil
				}
				return s.apply(w)
			})},
		// It hides that it has applied the write.
		{"swaps ignore that their context has ended", []string{lateSwap},
			swapping(func(s *store, w write) (driver.Version, error) {
				ended := w.ctx.Err()
				w.ctx = context.WithoutCancel(w.ctx)
				v, err := s.apply(w)
				return v, errors.Join(ended, err)
			})},
		{"calls ignore their context", []string{"ended context ends a read", lateSwap}, func(s *store) {
			changing(func(_ *store, w *write) { w.ctx = ignored(w.ctx) })(s)
			s.read = func(ctx context.Context, key string) (driver.Entry, error) { return s.Store.Read(ignored(ctx), key) }
		}},
		{"calls ignore the context in an outage", []string{cutEnds}, outage(func(context.Context) error {
			time.Sleep(time.Minute)
			return errors.New("timeout")
		})},
		{"calls leave work behind", []string{"calls leave nothing behind when the network is gone"},
			outage(func(ctx context.Context) error {
				go time.Sleep(time.Hour)
				<-ctx.Done()
				return ctx.Err()
			})},
		{"an open outcome is a conflict", []string{lateSwap, cutEnds}, func(s *store) {
			s.whenCut = func(ctx context.Context) error { <-ctx.Done(); return driver.ErrConflict }
			s.swap = func(w write) (driver.Version, error) {
				v, err := s.apply(w)
				if w.ctx.Err() != nil {
					err = driver.ErrConflict
				}
				return v, err
			}
		}},
	}
}

// renamed gives a store other names for its versions. It accepts any version with the right name.
func renamed(name func(driver.Entry) driver.Version) func(*store) {
	return func(s *store) {
		s.read = func(ctx context.Context, key string) (driver.Entry, error) {
			e, err := s.Store.Read(ctx, key)
			if !e.Absent() {
				e.Version = name(e)
			}
			return e, err
		}
		var mu sync.Mutex
		s.swap = func(w write) (driver.Version, error) {
			mu.Lock()
			defer mu.Unlock()
			if e, err := s.read(w.ctx, w.key); err != nil || e.Version != w.prev {
				return "", errors.Join(err, driver.ErrConflict)
			}
			s.Put(w.key, w.value)
			e, err := s.read(w.ctx, w.key)
			return e.Version, err
		}
	}
}

// forgetsWrites acknowledges every third write without applying it.
func forgetsWrites(s *store) {
	var n atomic.Int64
	s.swap = func(w write) (driver.Version, error) {
		if i := n.Add(1); i%3 == 0 {
			return driver.Version(fmt.Sprintf("lost%d", i)), nil
		}
		return s.apply(w)
	}
}

// ignored makes a call whose context has ended take a minute and succeed.
func ignored(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		time.Sleep(time.Minute)
	}
	return context.WithoutCancel(ctx)
}

func brokenValues() []breakage {
	return []breakage{
		{"values are trimmed", []string{"values are kept byte for byte"},
			changing(func(_ *store, w *write) { w.value = bytes.TrimSpace(w.value) })},
		{"values are cut short", []string{"values are kept byte for byte"},
			changing(func(_ *store, w *write) { w.value = w.value[:min(len(w.value), 4095)] })},
		{"values are shared", []string{"values are copied in and out"}, sharesValues},
		{"keys end at a dot", []string{"keys are distinct", "watch is of one key"}, alias(func(key string) string {
			before, _, _ := strings.Cut(key, ".")
			return before + "_"
		})},
		{"keys have no case", []string{"keys are distinct"}, alias(strings.ToLower)},
		{"a notice about a shared cell is all", []string{"keys are distinct"}, noticesAlias},
	}
}

func sharesValues(s *store) {
	var kept sync.Map
	s.swap = func(w write) (driver.Version, error) {
		v, err := s.apply(w)
		kept.Store(v, w.value)
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

// noticesAlias says that another key may have the cell, and shows its value all the same.
func noticesAlias(s *store) {
	alias(strings.ToLower)(s)
	read := s.read
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := read(ctx, key)
		if !e.Absent() {
			e.Notice = errors.New("it may be another's")
		}
		return e, err
	}
}

// alias maps several keys to one cell.
func alias(name func(key string) string) func(*store) {
	return func(s *store) {
		s.read = func(ctx context.Context, key string) (driver.Entry, error) { return s.Store.Read(ctx, name(key)) }
		changing(func(_ *store, w *write) { w.key = name(w.key) })(s)
		s.watch = func(w watch) (func(), error) { return s.listen(watch{w.ctx, name(w.key), w.see}) }
	}
}

func brokenAbsences() []breakage {
	const createAbsent, otherHistory = "create from absent applies", "recreated store has another history"
	return []breakage{
		{"absence is an error", []string{"absent key reads as an entry", createAbsent}, func(s *store) {
			s.read = func(ctx context.Context, key string) (driver.Entry, error) {
				e, err := s.Store.Read(ctx, key)
				if err == nil && e.Absent() {
					err = errors.New("not found")
				}
				return e, err
			}
		}},
		{"absence has no version that fits", []string{
			createAbsent, "deleted cell is absent and can be claimed again", "purged cell is absent and can be claimed again",
		}, swapping(func(s *store, w write) (driver.Version, error) {
			if s.now(w.key).Absent() {
				return "", driver.ErrConflict
			}
			return s.apply(w)
		})},
		{"absence fits everything", []string{
			"no old version fits a deleted cell", "no old version fits a purged cell", "pristine ends with the first write",
			"no old version fits a recreated cell",
		}, changing(func(s *store, w *write) {
			if e := s.now(w.key); e.Absent() {
				w.prev = e.Version
			}
		})},
		{"eras are missing", []string{otherHistory}, altersEntries(func(e *driver.Entry) { e.Era = 0 })},
		{"the era stays", []string{otherHistory}, altersEntries(func(e *driver.Entry) { e.Era = 7 })},
		{"a write over a marker is lost", []string{"empty version over a delete marker loses nothing"},
			swapping(func(s *store, w write) (driver.Version, error) {
				if w.prev == "" && s.now(w.key).Absent() {
					return "lost", nil
				}
				return s.apply(w)
			})},
		{"floor is that of the cell", []string{"floor survives a delete", "floor survives a purge"},
			altersEntries(func(e *driver.Entry) {
				if e.Absent() {
					e.Floor = min(e.Floor, 1)
				}
			})},
		{"floor counts too little", []string{"floor is never below a term", pushesAsRead},
			altersEntries(func(e *driver.Entry) { e.Floor = e.Floor/2 + 1 })},
		{"purged is pristine", []string{"pristine ends with the first write"},
			altersEntries(func(e *driver.Entry) { e.Pristine = e.Version == "" || e.Pristine })},
	}
}

// altersEntries changes the floor or other fields of each entry, pushed or read.
func altersEntries(change func(*driver.Entry)) func(*store) {
	return func(s *store) {
		s.read = func(ctx context.Context, key string) (driver.Entry, error) {
			e, err := s.Store.Read(ctx, key)
			change(&e)
			return e, err
		}
		pushing(func(e driver.Entry, see func(driver.Entry)) { change(&e); see(e) })(s)
	}
}

const (
	writesNothing   = "asking for the right to write writes nothing"
	answerWhenAsked = "candidates answer when they are asked"
	listsKeys       = "the list has the keys with a value"
)

func brokenAbilities() []breakage {
	return []breakage{
		{"rights are not checked", []string{"denied client learns that it is denied"}, func(s *store) {
			s.denied = struct{ driver.Store }{s.Store}
		}},
		{"rights are found out by a write", []string{writesNothing}, func(s *store) {
			s.rights = func(ctx context.Context, key string) error {
				_, err := s.apply(write{ctx, key, s.now(key).Version, []byte("may I?")})
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
		{"no lease is allowed", []string{"bounds are usable"}, func(s *store) { s.minLease = 2 * driver.MaxLease }},
		{"a list in no order", []string{listsKeys}, func(s *store) {
			s.list = func(keys []string) []string { return append(keys, "a") }
		}},
		{"a list with a key twice", []string{listsKeys}, func(s *store) {
			s.list = func(keys []string) []string { return append(keys, keys[len(keys)-1]) }
		}},
		{"a list without the last key", []string{listsKeys}, func(s *store) {
			s.list = func(keys []string) []string { return keys[:max(len(keys)-1, 0)] }
		}},
		{"a list with keys that were deleted", []string{listsKeys}, func(s *store) {
			ever := map[string]bool{}
			s.list = func(keys []string) []string {
				for _, key := range keys {
					ever[key] = true
				}
				return slices.Sorted(maps.Keys(ever))
			}
		}},
		{"candidates of all keys answer", []string{answerWhenAsked}, func(s *store) {
			s.present = func([][]byte) [][]byte { all, _ := s.Store.Candidates(context.Background(), ""); return all }
		}},
		{"only one candidate answers", []string{answerWhenAsked}, func(s *store) {
			s.present = func(all [][]byte) [][]byte { return all[:min(len(all), 1)] }
		}},
		{"candidates answer when they have gone", []string{answerWhenAsked}, func(s *store) {
			s.gone = func(func()) func() { return func() {} }
		}},
		{"a finding without remedy", []string{"findings are complete"}, func(s *store) { s.findings[0].Remedy = "" }},
		{"refused keys end up elsewhere", []string{"refused keys change no other cell"}, func(s *store) {
			last := ""
			changing(func(s *store, w *write) {
				if s.CheckKey(w.key) != nil {
					w.key = last
				}
				last = w.key
			})(s)
		}},
	}
}

const (
	pushesAsRead = "watch pushes a change as a read shows it"
	pushedSwaps  = "pushed version can be swapped from"
	endOfPushes  = "nothing is pushed after stop"
)

// watching replaces Watch, and pushing the call of see.
func watching(do func(*store, watch) (func(), error)) func(*store) {
	return func(s *store) { s.watch = func(w watch) (func(), error) { return do(s, w) } }
}

func pushing(push func(e driver.Entry, see func(driver.Entry))) func(*store) {
	return watching(func(s *store, w watch) (func(), error) {
		return s.listen(watch{w.ctx, w.key, func(e driver.Entry) { push(e, w.see) }})
	})
}

// stopping replaces stop.
func stopping(change func(stop func()) (changed func())) func(*store) {
	return watching(func(s *store, w watch) (func(), error) {
		stop, err := s.listen(w)
		return change(stop), err
	})
}

func brokenWatches() []breakage {
	return []breakage{
		{"nothing is pushed", []string{pushesAsRead, pushedSwaps}, pushing(func(driver.Entry, func(driver.Entry)) {})},
		{"versions are pushed in another form", []string{pushesAsRead, pushedSwaps},
			pushing(func(e driver.Entry, see func(driver.Entry)) { e.Version = "0" + e.Version; see(e) })},
		{"the value before is pushed", []string{pushesAsRead}, func(s *store) {
			old := []byte("nothing")
			pushing(func(e driver.Entry, see func(driver.Entry)) { e.Value, old = old, e.Value; see(e) })(s)
		}},
		{"removals are not pushed", []string{"watch pushes a removal"},
			pushing(func(e driver.Entry, see func(driver.Entry)) {
				if !e.Absent() {
					see(e)
				}
			})},
		// A goroutine that stopped the watch might stop it after the next push.
		{"the watch ends with its set-up", []string{"watch outlives the context of its set-up"},
			watching(func(s *store, w watch) (func(), error) {
				return s.listen(watch{w.ctx, w.key, func(e driver.Entry) {
					if w.ctx.Err() == nil {
						w.see(e)
					}
				}})
			})},
		{"all keys are pushed", []string{"watch is of one key"}, shared(func(h *hub, w watch) func() {
			h.add(func(_ string, e driver.Entry) { w.see(e) })
			return func() {}
		})},
		{"watches share a buffer", []string{"pushed values are copies"}, shared(func(h *hub, w watch) func() {
			h.add(w.ofKey)
			return func() {}
		})},
		{"a goroutine for each watch", []string{"watches cost no goroutine each"}, stopping(func(stop func()) func() {
			done := make(chan struct{})
			go func() { <-done }()
			return sync.OnceFunc(func() { close(done); stop() })
		})},
		{"stop does nothing", []string{endOfPushes}, stopping(func(func()) func() { return func() {} })},
		{"pushes are still queued at stop", []string{endOfPushes},
			stopping(func(stop func()) func() { return func() { time.AfterFunc(time.Millisecond, stop) } })},
		{"stop ends all watches", []string{"stop ends one watch alone", endOfPushes}, shared(func(h *hub, w watch) func() {
			h.add(w.ofKey)
			return h.clear
		})},
		{"a second stop hangs", []string{"stop may be called twice"}, stopping(func(stop func()) func() {
			once := make(chan struct{}, 1)
			return func() {
				select {
				case once <- struct{}{}:
					stop()
				case <-time.After(time.Hour):
				}
			}
		})},
		{"stop waits for see", []string{"stop may be called from see"}, watching(stopWaitsForSee)},
		{"set-up fails under load", []string{"watches may start and stop while others write"}, func(s *store) {
			busy := make(chan struct{}, 2)
			s.watch = func(w watch) (func(), error) {
				select {
				case busy <- struct{}{}:
				default:
					return nil, context.DeadlineExceeded
				}
				defer func() { time.Sleep(time.Millisecond); <-busy }()
				return s.listen(w)
			}
		}},
	}
}

// hub pushes the writes of all keys to every watch.
type hub struct {
	mu   sync.Mutex
	sees []func(key string, e driver.Entry)
}

// shared serves all watches of a store by one hub.
func shared(add func(*hub, watch) (stop func())) func(*store) {
	return func(s *store) {
		h := &hub{}
		s.watch = func(w watch) (func(), error) { return add(h, w), nil }
		s.swap = func(w write) (driver.Version, error) {
			v, err := s.apply(w)
			if err == nil {
				h.push(w.key, driver.Entry{Value: bytes.Clone(w.value), Version: v})
			}
			return v, err
		}
	}
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

// ofKey calls see for the entries of the watched key.
func (w watch) ofKey(key string, e driver.Entry) {
	if key == w.key {
		w.see(e)
	}
}

// stopWaitsForSee holds a lock during see and takes it in stop.
func stopWaitsForSee(s *store, w watch) (func(), error) {
	lock := make(chan struct{}, 1)
	stop, err := s.listen(watch{w.ctx, w.key, func(e driver.Entry) {
		lock <- struct{}{}
		w.see(e)
		<-lock
	}})
	return func() {
		select {
		case lock <- struct{}{}:
			stop()
			<-lock
		case <-time.After(time.Hour):
		}
	}, err
}
