package tenure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// damaged are cells from which no election continues, with the wait that Reset returns.
var damaged = map[string]struct {
	bytes string
	wait  time.Duration
	term  uint64 // the term that it shows
}{
	"foreign":                     {`mine`, lease, 0},
	"foreign JSON":                {`{"owner":"somebody"}`, lease, 0},
	"a longer lease":              {`{"leaderID":"x","incarnation":"i","term":77,"leaseMillis":40000}`, 40 * time.Second, 77},
	"a shorter lease":             {`{"leaderID":"x","incarnation":"i","term":77,"leaseMillis":3000}`, lease, 77},
	"an unreadable lease":         {`{"leaderID":"x","incarnation":"i","term":77,"leaseMillis":"soon"}`, lease, 77},
	"a huge lease":                {`{"leaderID":"x","incarnation":"i","term":77,"leaseMillis":7200000,"nonce":"n"}`, lease, 77},
	"a term that is not credible": {`{"leaderID":"x","incarnation":"i","term":9007199254740991,"leaseMillis":30000,"nonce":"n"}`, 30 * time.Second, 0},
	"no term and no name":         {`{"incarnation":"i","leaseMillis":2000}`, lease, 0},
}

// vacantInStore returns the record that a reset wrote.
func vacantInStore(t *testing.T, store driver.Store) (term uint64, wait time.Duration) {
	t.Helper()
	entry, err := store.Read(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		LeaderID          string
		Term, LeaseMillis uint64
	}
	if err := json.Unmarshal(entry.Value, &r); err != nil || r.LeaderID != "" {
		t.Fatalf("the store holds %q, %v", entry.Value, err)
	}
	return r.Term, time.Duration(r.LeaseMillis) * time.Millisecond
}

func TestElectionContinuesAfterAResetAndNotTooSoon(t *testing.T) {
	for name, d := range damaged {
		t.Run(name, func(t *testing.T) {
			bubbles(t, func(t *testing.T, store operated) {
				for range 20 {
					// So that the store has a floor.
					store.Put("another election", []byte("x"))
				}
				store.Put(key, []byte(d.bytes))
				a := start(t, mustNew(t, store, "a", nil), holdOn)
				time.Sleep(time.Second)
				began := time.Now()
				wait, err := admin.Reset(t.Context(), store, key, lease)
				if err != nil || wait != d.wait {
					t.Fatalf("Reset returned %v, %v; want %v", wait, err, d.wait)
				}
				if term, lease := vacantInStore(t, store); lease != wait || term < max(21, d.term) {
					t.Errorf("the vacant record is of term %d and %v", term, lease)
				}
				term := within(t, time.Hour/2, a.won, "term of a")
				// Without pushes the candidate must first find the record, and a poll later find
				// that it has expired.
				if took := time.Since(began); took < wait || took > wait+2*lease {
					t.Errorf("elected after %v; Reset promised %v", took, wait)
				}
				if term.Token() <= max(21, d.term) {
					t.Errorf("token %d", term.Token())
				}
			})
		})
	}
}

// A member that has seen a record with an unreadable lease must not wait for the longest possible
// lease after the record is gone.
func TestUnreadableLeaseIsForgottenWithItsRecord(t *testing.T) {
	forgotten := func(t *testing.T, store operated) {
		store.Put(key, []byte(damaged["an unreadable lease"].bytes))
		a := start(t, mustNew(t, store, "a", nil), holdOn)
		time.Sleep(time.Minute)
		if len(a.won) > 0 {
			t.Fatal("elected over a record whose lease may be running yet")
		}
		store.Purge(key)
		within(t, 4*lease, a.won, "term of a")
		_ = a.end(t)
	}
	bubbles(t, forgotten)
	t.Run("without pushes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { forgotten(t, silent{memory.NewPolled()}) })
	})
}

func TestResetRefusesASoundRecord(t *testing.T) {
	put := func(t *testing.T, store operated, r string) { store.Put(key, []byte(r)) }
	for name, prepare := range map[string]func(*testing.T, operated){
		"nothing ever": func(*testing.T, operated) {},
		"deleted":      func(t *testing.T, store operated) { put(t, store, "x"); store.Delete(key) },
		"purged":       func(t *testing.T, store operated) { put(t, store, "x"); store.Purge(key) },
		"held": func(t *testing.T, store operated) {
			put(t, store, `{"leaderID":"x","incarnation":"i","term":7,"leaseMillis":9000,"seq":1,"nonce":"n"}`)
		},
		"released": func(t *testing.T, store operated) {
			put(t, store, `{"leaderID":"x","incarnation":"i","term":7,"leaseMillis":9000,"seq":1,"nonce":"n","released":true}`)
		},
		"vacant": func(t *testing.T, store operated) { put(t, store, `{"term":7,"leaseMillis":9000,"nonce":"n"}`) },
		"of a later version": func(t *testing.T, store operated) {
			put(t, store, `{"leaderID":"x","incarnation":"i","term":7,"leaseMillis":9000,"seq":1,"nonce":"n","mood":"good"}`)
		},
		"reset before": func(t *testing.T, store operated) {
			put(t, store, "x")
			if _, err := admin.Reset(t.Context(), store, key, lease); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubbles(t, func(t *testing.T, store operated) {
				prepare(t, store)
				before, _ := store.Read(t.Context(), key)
				wait, err := admin.Reset(t.Context(), store, key, lease)
				if !errors.Is(err, admin.ErrSound) || wait != 0 {
					t.Errorf("Reset returned %v, %v", wait, err)
				}
				if after, _ := store.Read(t.Context(), key); after.Version != before.Version {
					t.Errorf("version %q became %q", before.Version, after.Version)
				}
			})
		})
	}
}

// between is a store in which something happens between a read and the next write.
type between struct {
	operated
	happens func()
}

func (b between) Read(ctx context.Context, key string) (driver.Entry, error) {
	defer b.happens()
	return b.operated.Read(ctx, key)
}

func TestResetDoesNotOverwriteANewRecord(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		store.Put(key, []byte("mine"))
		b := between{store, func() { store.Put(key, []byte("mended")) }}
		_, err := admin.Reset(t.Context(), b, key, lease)
		if !errors.Is(err, driver.ErrConflict) {
			t.Errorf("Reset returned %v", err)
		}
		if e, _ := store.Read(t.Context(), key); string(e.Value) != "mended" {
			t.Errorf("the store holds %q", e.Value)
		}
	})
}

func TestResetReportsStoreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		op    faults.Op
		fault faults.Fault
		want  error
		reset bool
	}{
		"no right to read":  {faults.Read, faults.Deny, driver.ErrDenied, false},
		"no right to write": {faults.Write, faults.Deny, driver.ErrDenied, false},
		"lost request":      {faults.Write, faults.LoseRequest, faults.ErrInjected, false},
		"lost answer":       {faults.Write, faults.LoseAnswer, faults.ErrInjected, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubbles(t, func(t *testing.T, store operated) {
				store.Put(key, []byte("mine"))
				f := faults.New(store, 1, faults.Plan{Timeout: time.Second})
				f.Next(c.op, c.fault)
				if _, err := admin.Reset(t.Context(), f, key, lease); !errors.Is(err, c.want) {
					t.Errorf("Reset returned %v, want %v", err, c.want)
				}
				_, again := admin.Reset(t.Context(), f, key, lease)
				if errors.Is(again, admin.ErrSound) != c.reset || !c.reset && again != nil {
					t.Errorf("Reset once more: %v", again)
				}
				f.Wait()
			})
		})
	}
}

func TestResetEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faults.New(memory.New(), 1, faults.Plan{})
		f.Next(faults.Read, faults.HangBefore)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := admin.Reset(ctx, f, key, lease); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Reset returned %v", err)
		}
	})
}

// A leader that cannot learn of the reset leads until its deadline. No other candidate leads before
// that.
func TestResetWaitsForALeaderThatIsCutOff(t *testing.T) {
	for name, d := range damaged {
		for early := range 4 {
			t.Run(name, func(t *testing.T) {
				bubbles(t, func(t *testing.T, store operated) {
					f := faults.New(store, 1, faults.Plan{})
					a, old := elect(t, f, "a", nil)
					b := start(t, mustNew(t, store, "b", nil), holdOn)
					time.Sleep(lease/3 + time.Duration(early)*time.Second)
					f.Partition()
					store.Put(key, []byte(d.bytes))
					if _, err := admin.Reset(t.Context(), store, key, lease); err != nil {
						t.Fatal(err)
					}
					if err := old.Err(); err != nil {
						t.Fatalf("a does not lead any more: %v", err)
					}
					next := within(t, time.Hour/2, b.won, "term of b")
					if old.Err() == nil {
						t.Errorf("b leads, and %v are left to a", old.Remaining())
					}
					if next.Token() <= old.Token() {
						t.Errorf("token %d after %d", next.Token(), old.Token())
					}
					f.Heal()
					_ = a.end(t)
					_ = b.end(t)
					f.Wait()
				})
			})
		}
	}
}

// A leader that reads the vacant record steps down, and then waits like the others.
func TestLeaderStepsDownAfterAReset(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, old := elect(t, store, "a", nil)
		time.Sleep(time.Second)
		store.Put(key, []byte("mine"))
		if _, err := admin.Reset(t.Context(), store, key, lease); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		within(t, lease/2, old.Context().Done(), "end of a's term")
		next := within(t, 5*lease, a.won, "another term of a")
		if took := time.Since(began); took < lease || next.Token() <= old.Token() {
			t.Errorf("token %d, %v after the reset; before it was %d", next.Token(), took, old.Token())
		}
	})
}

// TestEndLeaseEndsLongWaits: members remember the longest lease that they have seen, and wait for
// it when the record of its leader is deleted. An operator who knows that the leader is gone ends
// that.
func TestEndLeaseEndsLongWaits(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		const long = 50 * time.Minute
		f := faulty(t, store)
		gone, old := elect(t, f, "gone", func(c *tenure.Config) { c.Lease = long })
		a := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.Lease = 2 * time.Second }), holdOn)
		time.Sleep(time.Minute)
		f.Partition()
		_ = gone.end(t) // its process is stopped
		store.Delete(key)
		time.Sleep(10 * time.Minute)
		if len(a.won) > 0 {
			t.Fatal("a lease that was seen is not waited out")
		}
		term, err := admin.EndLease(t.Context(), store, key, "operator", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		next := within(t, 10*time.Second, a.won, "term of a")
		if next.Token() <= term || term <= old.Token() {
			t.Errorf("tokens: %d, then the operator's %d, then %d", old.Token(), term, next.Token())
		}
		_ = a.end(t)
		f.Heal()
	})
}

// tooHigh is a record with a lease of 15 s and a term that no candidate can have reached.
const tooHigh = `{"leaderID":"x","incarnation":"i","term":%d,"leaseMillis":15000,"seq":1,"nonce":"n%d"}`

// lastTerm is the highest term that a record can show.
const lastTerm = 1<<53 - 1

// Earlier versions stopped an election forever after one record with the last term: no candidate
// could claim above it, and every candidate remembered it after the key was deleted.
func TestTermAboveTheLimitIsWaitedOut(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var events diary
		a, old := elect(t, store, "a", func(c *tenure.Config) { c.OnEvent = events.note })
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(lease)
		store.Put(key, fmt.Appendf(nil, tooHigh, uint64(lastTerm), 1))
		put := time.Now()
		within(t, lease, old.Context().Done(), "end of a's term")
		var next *tenure.Term
		select {
		case next = <-a.won:
		case next = <-b.won:
		}
		if took := time.Since(put); took < lease || took > 3*lease {
			t.Errorf("elected after %v; the record shows a lease of %v", took, lease)
		}
		if next.Token() <= old.Token() || next.Token() > old.Token()+100 {
			t.Errorf("token %d after token %d", next.Token(), old.Token())
		}
		if alarm := events.find(tenure.EventAlarm); alarm == nil || !errors.Is(alarm.Cause, tenure.ErrMalformed) {
			t.Errorf("alarm of a: %+v", alarm)
		}
	})
}

func TestStatusShowsATermAboveTheLimitAsMalformed(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		store.Put(key, fmt.Appendf(nil, tooHigh, uint64(lastTerm), 1))
		s, err := mustNew(t, store, "a", nil).Wait(t.Context(), func(s tenure.Status) bool { return s.Known })
		if err != nil || s.Leader.Exists() || s.Record.Kind != admin.Malformed || s.Record.Lease != lease ||
			!errors.Is(s.Record.Problem, tenure.ErrMalformed) {
			t.Errorf("Wait returned %+v, %v", s, err)
		}
	})
}

// If the store has no floor, a term from another handle's clock is credible, and the next term is
// above it.
func TestStoreWithoutAFloorLosesNoCredibleTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := withoutFloor{memory.NewPolled()}
		now := uint64(time.Now().UnixMicro())
		for i, made := range []uint64{1 << 41, now, 2 * now} {
			store.Put(key, fmt.Appendf(nil, tooHigh, made, i))
			a := start(t, mustNew(t, store, "a", nil), holdOn)
			if term := within(t, 3*lease, a.won, "term of a"); term.Token() != made+1 {
				t.Errorf("token %d after term %d", term.Token(), made)
			}
			_ = a.end(t)
		}
		store.Put(key, fmt.Appendf(nil, tooHigh, uint64(lastTerm), 4))
		elect(t, store, "a", nil)
	})
}

// withoutFloor is a store without a floor.
type withoutFloor struct{ *memory.Polled }

func (g withoutFloor) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := g.Polled.Read(ctx, key)
	e.Floor, e.Pristine = 0, false
	return e, err
}
