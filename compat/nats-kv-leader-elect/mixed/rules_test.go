package mixed

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
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
func seen(of func(fields) bool, change func(*fields)) natskv.Translator {
	return spoiled{Translator: translator{}, show: func(value []byte) []byte {
		if r, ok := parse(value); ok && of(r) {
			change(&r)
			return r.encode()
		}
		return value
	}}
}

func isOld(r fields) bool { return strings.HasPrefix(r.Incarnation, predecessor) }

// writes replaces the translation of writes.
func writes(write func(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error)) natskv.Translator {
	return spoiled{Translator: translator{}, write: write}
}

// past writes some records without the translation.
func past(of func(fields) bool) natskv.Translator {
	return writes(func(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error) {
		var r fields
		if json.Unmarshal(value, &r) == nil && of(r) {
			return value, false, nil
		}
		return translator{}.Write(ttl, value, overAbsence)
	})
}

// unmarked forgets which versions belong to an absent key.
func unmarked(ttl time.Duration, value []byte, _ bool) ([]byte, bool, error) {
	return translator{}.Write(ttl, value, false)
}

// unreleased never marks a record as deleted.
func unreleased(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error) {
	stored, _, err := translator{}.Write(ttl, value, overAbsence)
	return stored, false, err
}

// markVacant lets old candidates take vacant records for a deleted key.
func markVacant(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error) {
	stored, deleted, err := translator{}.Write(ttl, value, overAbsence)
	r, ok := parse(stored)
	return stored, deleted || ok && r.vacant(), err
}

const oldInterval = fleetTTL / 4 * 3

// leaveAlone: an old leader keeps its rules, beside Tenure candidates.
func leaveAlone(f *fleet) {
	old := leading(f, f.startOld(0, oldInterval))
	f.startNew(0)
	f.startNew(1)
	time.Sleep(20 * fleetTTL)
	f.check(old.leads(), "the old leader was deposed")
}

// deleteUnderOld: the record of an old leader is deleted just after a renewal.
func deleteUnderOld(f *fleet) {
	leading(f, f.startOld(0, oldInterval))
	n := f.startNew(0)
	time.Sleep(2*oldInterval + time.Second)
	f.remove(true)
	f.await("the new one leads", fleetTTL, n.leads)
}

// longLease: a leader is cut off, and the server's clock is set forward by two thirds of the TTL.
func longLease(f *fleet) {
	n := f.startNew(0)
	for begun := time.Now(); !n.leads() && time.Since(begun) < 2*fleetTTL; {
		time.Sleep(time.Second)
	}
	n.line.Partition()
	time.Sleep(fleetTTL / 2)
	f.setClock(fleetTTL / 3 * 2)
	old := f.startOld(0, time.Second)
	f.await("the old one leads", 2*fleetTTL, old.leads)
	time.Sleep(fleetTTL)
	n.line.Heal()
}

// resign: a Tenure leader resigns, and the only other candidate is an old one.
func resign(f *fleet) {
	leading(f, f.startNew(0))
	old := f.startOld(0, 2*time.Second)
	time.Sleep(fleetTTL)
	f.end(3, false)
	f.await("the old one leads", 2*time.Second+100*time.Millisecond, old.leads)
}

// deleteTwice: while a Tenure leader is cut off, its record is deleted. An old candidate leads, and
// its record is deleted, too.
func deleteTwice(f *fleet) {
	n := leading(f, f.startNew(0))
	n.line.Partition()
	f.remove(true)
	old := f.startOld(0, time.Second)
	f.await("the old one leads", time.Second, old.leads)
	f.remove(true)
	n.line.Heal()
	time.Sleep(2 * fleetTTL)
}

// deleteUnderCutOff: the record of a Tenure leader that is cut off is deleted. An old candidate
// comes a second later.
func deleteUnderCutOff(f *fleet) {
	n := leading(f, f.startNew(0))
	f.startNew(1)
	time.Sleep(fleetLease)
	n.line.Partition()
	f.remove(true)
	time.Sleep(time.Second)
	f.startOld(0, time.Second)
	time.Sleep(fleetTTL)
	n.line.Heal()
	window := f.close().window
	f.check(window == 0, "an old one led for %v beside a leader whose record was deleted", window)
}

// askOld: an operator asks an old leader to hand over.
func askOld(f *fleet) {
	old := leading(f, f.startOld(0, oldInterval))
	n := f.startNew(0)
	time.Sleep(time.Second)
	f.check(n.election.HandOver(context.Background(), "") != nil, "an old leader could be asked to hand over")
	time.Sleep(fleetTTL)
	f.check(old.leads(), "the old leader was deposed")
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
			seen(isOld, func(r *fields) { r.LeaseMillis /= 2 })},
		{"each of its writes is a new state", "it writes the same bytes when it renews", leaveAlone, 0,
			seen(isOld, func(r *fields) { r.Nonce = "0" })},
		{"a vacant record is waited out for more than three quarters of the TTL", "an old leader whose record was deleted does not read",
			deleteUnderOld, 0, seen(fields.vacant, func(r *fields) { r.LeaseMillis = millis(fleetLease) })},
		{"a vacant record is waited out for less than the TTL", "it expires before anybody may claim it",
			deleteUnderOld, 0, seen(fields.vacant, func(r *fields) { r.LeaseMillis = millis(fleetTTL) })},
		{"a lease is at most a third of the TTL", "the record expires under its leader", longLease, fleetTTL / 6 * 5,
			past(func(r fields) bool { return r.LeaderID != "" && !r.Released })},
		{"a release is marked", "an old candidate takes a released record for a leader's", resign, 0, writes(unreleased)},
		{"a vacant record is not marked", "an old candidate would lead at once", deleteUnderCutOff, 0, writes(markVacant)},
		{"what a leader puts over an absence is no release", "an old one may have led in between", deleteTwice, 0, writes(unmarked)},
		{"an old leader's value is not changed", "it knows no other version than its own", askOld, 0, past(isOld)},
	} {
		t.Run(c.name, func(t *testing.T) {
			cond := conditions{calm: true, lease: c.lease}
			for _, fault := range inFleet(t, 1, cond, c.story).faults {
				t.Error(fault)
			}
			cond.spoiled = c.without
			faults := inFleet(t, 1, cond, c.story).faults
			if len(faults) == 0 {
				t.Fatalf("nothing happened without the rule, though %s", c.why)
			}
			t.Logf("without it: %s", faults[0])
		})
	}
}

// leading waits until the candidate leads.
func leading[P participant](f *fleet, p P) P {
	f.await(p.name()+" leads", fleetTTL, p.leads)
	return p
}

// TestTimeWithoutLeader checks the table in docs/nats.md, for the worst case of each row.
func TestTimeWithoutLeader(t *testing.T) {
	const some = time.Second // for requests in flight
	oldOne := func(f *fleet) participant { return f.startOld(0, oldInterval) }
	newOne := func(f *fleet) participant { return f.startNew(1) }
	// afterNew is the end of a new one, with the next leader waiting.
	afterNew := func(crash bool, next func(*fleet) participant) func(*fleet) participant {
		return func(f *fleet) participant {
			leading(f, f.startNew(0))
			p := next(f)
			time.Sleep(fleetTTL)
			f.end(3, crash)
			return p
		}
	}
	const crashed, resigned = true, false
	for _, c := range []struct {
		name    string
		handles bool
		story   func(f *fleet) participant // returns the next leader
		limit   time.Duration
	}{
		{"after an old one that crashed, a new one", false, func(f *fleet) participant {
			leading(f, f.startOld(0, oldInterval))
			n := f.startNew(0)
			time.Sleep(2*oldInterval + time.Second)
			f.end(0, true)
			return n
		}, fleetTTL + fleetTTL/8*7 + some},
		{"after a new one that crashed, a new one", false, afterNew(crashed, newOne), fleetLease + some},
		{"after a new one that crashed, an old one", false, afterNew(crashed, oldOne), fleetTTL + oldInterval + some},
		{"after a new one that resigned, a new one", false, afterNew(resigned, newOne), some},
		{"after a new one that resigned, an old one", false, afterNew(resigned, oldOne), oldInterval + some},
		{"after a new one over a handle that resigned, an old one", true, afterNew(resigned, oldOne), fleetTTL + oldInterval + some},
		{"after a new one over a handle that resigned, a new one", true, afterNew(resigned, newOne), some},
		{"after a deletion, a new one", false, func(f *fleet) participant {
			n := leading(f, f.startNew(0))
			time.Sleep(fleetTTL)
			f.remove(true)
			f.await("the leader stops", some, func() bool { return !n.leads() })
			return n
		}, fleetTTL/8*7 + some},
		{"after the last one that was migrating, one without", false, func(f *fleet) participant {
			leading(f, f.startOld(0, oldInterval))
			f.startNew(0)
			time.Sleep(time.Second)
			f.end(0, true)
			time.Sleep(fleetTTL + time.Second)
			f.end(3, true) // it has just written a vacant record
			return f.startOn(1, f.open(f.js))
		}, fleetTTL + some},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := inFleet(t, 1, conditions{calm: true, handles: c.handles}, func(f *fleet) {
				next := c.story(f)
				begun := time.Now()
				f.await(next.name()+" leads", c.limit, next.leads)
				t.Logf("%v of at most %v", time.Since(begun).Round(time.Millisecond), c.limit)
			})
			for _, fault := range r.faults {
				t.Error(fault)
			}
		})
	}
}
