package natstest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/internal/format"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/mixed"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/natstest"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/migration"
)

// spoiled removes a part of the translation.
type spoiled struct {
	natskv.Translator
	// If set, show is called after the translation.
	show func(value []byte) []byte
	// If set, write replaces the translation.
	write func(ttl time.Duration, value []byte, overAbsence bool) (_ []byte, _ bool, _ error)
}

func (s spoiled) Show(ttl time.Duration, value []byte, v driver.Version) []byte {
	shown := s.Translator.Show(ttl, value, v)
	if s.show != nil {
		return s.show(shown)
	}
	return shown
}

func (s spoiled) Write(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error) {
	if s.write != nil {
		return s.write(ttl, value, overAbsence)
	}
	return s.Translator.Write(ttl, value, overAbsence)
}

// seen changes some records before elections see them.
func seen(of func(record.Record) bool, change func(*record.Record)) natskv.Translator {
	return spoiled{Translator: format.Translator{}, show: func(value []byte) []byte {
		if r, err := record.Decode(value); err == nil && of(r) {
			change(&r)
			value, _ = record.Encode(r)
		}
		return value
	}}
}

func vacant(r record.Record) bool { return r.LeaderID == "" && !r.Released }

func isOld(r record.Record) bool { return strings.HasPrefix(r.Incarnation, "nats-kv:") }

// writes replaces the translation of writes.
func writes(write func(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error)) natskv.Translator {
	return spoiled{Translator: format.Translator{}, write: write}
}

// past writes some records without the translation.
func past(of func(record.Record) bool) natskv.Translator {
	return writes(func(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error) {
		if r, err := record.Decode(value); err == nil && of(r) {
			return value, false, nil
		}
		return format.Translator{}.Write(ttl, value, overAbsence)
	})
}

// unmarked forgets which versions belong to an absent key.
func unmarked(ttl time.Duration, value []byte, _ bool) ([]byte, bool, error) {
	return format.Translator{}.Write(ttl, value, false)
}

// unreleased never marks a record as deleted.
func unreleased(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error) {
	stored, _, err := format.Translator{}.Write(ttl, value, overAbsence)
	return stored, false, err
}

// markVacant lets old candidates take vacant records for a deleted key.
func markVacant(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error) {
	stored, deleted, err := format.Translator{}.Write(ttl, value, overAbsence)
	r, broken := record.Decode(stored)
	return stored, deleted || broken == nil && vacant(r), err
}

const oldInterval = ttl / 4 * 3

// leaveAlone: an old leader keeps its rules, beside Tenure candidates.
func leaveAlone(f *fleet) {
	old := leading(f, f.startOld(0, oldInterval))
	f.startNew(0)
	f.startNew(1)
	time.Sleep(20 * ttl)
	f.Check(old.Leads(), "the old leader was deposed")
}

// deleteUnderOld: the record of an old leader is deleted just after a renewal.
func deleteUnderOld(f *fleet) {
	leading(f, f.startOld(0, oldInterval))
	n := f.startNew(0)
	time.Sleep(2*oldInterval + time.Second)
	f.remove(true)
	f.await("the new one leads", ttl, n.Leads)
}

// longLease: a leader is cut off, and the server's clock is set forward by two thirds of the TTL.
func longLease(f *fleet) {
	n := f.startNew(0)
	for begun := time.Now(); !n.Leads() && time.Since(begun) < 2*ttl; {
		time.Sleep(time.Second)
	}
	n.Line.Partition()
	time.Sleep(ttl / 2)
	f.setClock(ttl / 3 * 2)
	old := f.startOld(0, time.Second)
	f.await("the old one leads", 2*ttl, old.Leads)
	time.Sleep(ttl)
	n.Line.Heal()
}

// resign: a Tenure leader resigns, and the only other candidate is an old one.
func resign(f *fleet) {
	leading(f, f.startNew(0))
	old := f.startOld(0, 2*time.Second)
	time.Sleep(ttl)
	f.End(3, false)
	f.await("the old one leads", 2*time.Second+100*time.Millisecond, old.Leads)
}

// deleteTwice: while a Tenure leader is cut off, its record is deleted. An old candidate leads, and
// its record is deleted, too.
func deleteTwice(f *fleet) {
	n := leading(f, f.startNew(0))
	n.Line.Partition()
	f.remove(true)
	old := f.startOld(0, time.Second)
	f.await("the old one leads", time.Second, old.Leads)
	f.remove(true)
	n.Line.Heal()
	time.Sleep(2 * ttl)
}

// deleteUnderCutOff: the record of a Tenure leader that is cut off is deleted. An old candidate
// comes a second later.
func deleteUnderCutOff(f *fleet) {
	n := leading(f, f.startNew(0))
	f.startNew(1)
	time.Sleep(lease)
	n.Line.Partition()
	f.remove(true)
	time.Sleep(time.Second)
	f.startOld(0, time.Second)
	time.Sleep(ttl)
	n.Line.Heal()
	f.Close()
	f.Check(f.window == 0, "an old one led for %v beside a leader whose record was deleted", f.window)
}

// askOld: an operator asks an old leader to hand over.
func askOld(f *fleet) {
	old := leading(f, f.startOld(0, oldInterval))
	n := f.startNew(0)
	time.Sleep(time.Second)
	f.Check(n.HandOver(context.Background()) != nil, "an old leader could be asked to hand over")
	time.Sleep(ttl)
	f.Check(old.Leads(), "the old leader was deposed")
}

// TestEachRuleIsNeeded runs each story twice: with all rules, and without the one rule that it
// covers.
func TestEachRuleIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name, why string
		story     func(*fleet)
		lease     time.Duration
		without   natskv.Translator
	}{
		{"an old leader is waited out for the TTL", "it renews after three quarters of that", leaveAlone, 0,
			seen(isOld, func(r *record.Record) { r.Lease /= 2 })},
		{"each of its writes is a new state", "it writes the same bytes when it renews", leaveAlone, 0,
			seen(isOld, func(r *record.Record) { r.Nonce = "0" })},
		{"a vacant record is waited out for more than three quarters of the TTL", "an old leader whose record was deleted does not read",
			deleteUnderOld, 0, seen(vacant, func(r *record.Record) { r.Lease = lease })},
		{"a vacant record is waited out for less than the TTL", "it expires before anybody may claim it",
			deleteUnderOld, 0, seen(vacant, func(r *record.Record) { r.Lease = ttl })},
		{"a lease is at most a third of the TTL", "the record expires under its leader", longLease, ttl / 6 * 5,
			past(func(r record.Record) bool { return r.LeaderID != "" && !r.Released })},
		{"a release is marked", "an old candidate takes a released record for a leader's", resign, 0, writes(unreleased)},
		{"a vacant record is not marked", "an old candidate would lead at once", deleteUnderCutOff, 0, writes(markVacant)},
		{"what a leader puts over an absence is no release", "an old one may have led in between", deleteTwice, 0, writes(unmarked)},
		{"an old leader's value is not changed", "it knows no other version than its own", askOld, 0, past(isOld)},
	} {
		t.Run(c.name, func(t *testing.T) {
			cond := conditions{calm: true, lease: c.lease}
			for _, fault := range inFleet(t, 1, cond, c.story).Faults {
				t.Error(fault)
			}
			cond.spoiled = c.without
			faults := inFleet(t, 1, cond, c.story).Faults
			if len(faults) == 0 {
				t.Fatalf("nothing happened without the rule, though %s", c.why)
			}
			t.Logf("without it: %s", faults[0])
		})
	}
}

// leading waits until the candidate leads.
func leading[P migration.Process](f *fleet, p P) P {
	f.await(p.Name()+" leads", ttl, p.Leads)
	return p
}

// TestTimeWithoutLeader checks the table in docs/nats-kv-leader-elect.md, for the worst case of
// each row.
func TestTimeWithoutLeader(t *testing.T) {
	const some = time.Second // for requests in flight
	oldOne := func(f *fleet) migration.Process { return f.startOld(0, oldInterval) }
	newOne := func(f *fleet) migration.Process { return f.startNew(1) }
	// afterNew is the end of a new one, with the next leader waiting.
	afterNew := func(crash bool, next func(*fleet) migration.Process) func(*fleet) migration.Process {
		return func(f *fleet) migration.Process {
			leading(f, f.startNew(0))
			p := next(f)
			time.Sleep(ttl)
			f.End(3, crash)
			return p
		}
	}
	const crashed, resigned = true, false
	for _, c := range []struct {
		name    string
		handles bool
		story   func(f *fleet) migration.Process // returns the next leader
		limit   time.Duration
	}{
		{"after an old one that crashed, a new one", false, func(f *fleet) migration.Process {
			leading(f, f.startOld(0, oldInterval))
			n := f.startNew(0)
			time.Sleep(2*oldInterval + time.Second)
			f.End(0, true)
			return n
		}, ttl + ttl/8*7 + some},
		{"after a new one that crashed, a new one", false, afterNew(crashed, newOne), lease + some},
		{"after a new one that crashed, an old one", false, afterNew(crashed, oldOne), ttl + oldInterval + some},
		{"after a new one that resigned, a new one", false, afterNew(resigned, newOne), some},
		{"after a new one that resigned, an old one", false, afterNew(resigned, oldOne), oldInterval + some},
		{"after a new one over a handle that resigned, an old one", true, afterNew(resigned, oldOne), ttl + oldInterval + some},
		{"after a new one over a handle that resigned, a new one", true, afterNew(resigned, newOne), some},
		{"after a deletion, a new one", false, func(f *fleet) migration.Process {
			n := leading(f, f.startNew(0))
			time.Sleep(ttl)
			f.remove(true)
			f.await("the leader stops", some, func() bool { return !n.Leads() })
			return n
		}, ttl/8*7 + some},
		{"after the last one that was migrating, one without", false, func(f *fleet) migration.Process {
			leading(f, f.startOld(0, oldInterval))
			f.startNew(0)
			time.Sleep(time.Second)
			f.End(0, true)
			time.Sleep(ttl + time.Second)
			f.End(3, true) // it has just written a vacant record
			return f.startOn(1, f.open(f.js))
		}, ttl + some},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := inFleet(t, 1, conditions{calm: true, handles: c.handles}, func(f *fleet) {
				next := c.story(f)
				begun := time.Now()
				f.await(next.Name()+" leads", c.limit, next.Leads)
				t.Logf("%v of at most %v", time.Since(begun).Round(time.Millisecond), c.limit)
			})
			for _, fault := range r.Faults {
				t.Error(fault)
			}
		})
	}
}

// quoting writes text that is not JSON as a JSON text. To this store, bare text is an old leader.
type quoting struct{ *natskv.Store }

func (q quoting) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := q.Store.Read(ctx, key)
	var text string
	if err == nil && json.Unmarshal(e.Value, &text) == nil {
		e.Value = []byte(text)
	}
	return e, err
}

func (q quoting) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if !json.Valid(value) {
		value, _ = json.Marshal(string(value))
	}
	return q.Store.CompareAndSwap(ctx, key, prev, value)
}

// TestElectionsWhileMigrating: to Tenure candidates the store is like any other.
func TestElectionsWhileMigrating(t *testing.T) {
	natstest.PrepareBubble(t)
	electiontest.RunInBubbles(t, func(t testing.TB) drivertest.Harness {
		natstest.PrepareBubble(t)
		w := newWorld(t)
		operator := w.modern()
		// The kit uses leases of two seconds. Three of them must fit in the TTL.
		kv, err := operator.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
			Bucket: "B", TTL: 6 * time.Second, Storage: jetstream.MemoryStorage,
		})
		if err != nil {
			t.Fatal(err)
		}
		open := func() driver.Store {
			store, err := natskv.Open(t.Context(), w.modern(), "B", mixed.Migrating())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			return quoting{store}
		}
		return drivertest.Harness{
			Store: open(), Peer: open(),
			Delete: func(ctx context.Context, key string) error { return kv.Delete(ctx, key) },
			Purge:  func(ctx context.Context, key string) error { return purge(ctx, operator, key) },
		}
	})
}
