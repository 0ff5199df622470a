package tenure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
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

// tooHigh is a record with a lease of 15 s and a term that no candidate can have reached.
const tooHigh = `{"leaderID":"x","incarnation":"i","term":%d,"leaseMillis":15000,"seq":1,"nonce":"n%d"}`

// lastTerm is the highest term that a record can show.
const lastTerm = 1<<53 - 1

// reset resets the election over a link.
func (s *scene) reset() (time.Duration, error) {
	return admin.Reset(s.Context(), s.link, key, lease)
}

// vacantInStore returns the record that a reset wrote.
func (s *scene) vacantInStore() (term uint64, wait time.Duration) {
	s.Helper()
	entry := s.read()
	var r struct {
		LeaderID          string
		Term, LeaseMillis uint64
	}
	if err := json.Unmarshal(entry.Value, &r); err != nil || r.LeaderID != "" {
		s.Fatalf("the store holds %q, %v", entry.Value, err)
	}
	return r.Term, time.Duration(r.LeaseMillis) * time.Millisecond
}

func TestElectionContinuesAfterAResetAndNotTooSoon(t *testing.T) {
	all := scenes{}
	for name, d := range damaged {
		all[name] = func(s *scene) {
			for range 20 {
				s.store.Put("another election", []byte("x")) // so that the store has a floor
			}
			s.put("%s", d.bytes)
			a := s.run("a")
			time.Sleep(time.Second)
			wait, err := s.reset()
			if err != nil || wait != d.wait {
				s.Fatalf("Reset returned %v, %v; want %v", wait, err, d.wait)
			}
			if term, lease := s.vacantInStore(); lease != wait || term < max(21, d.term) {
				s.Errorf("the vacant record is of term %d and %v", term, lease)
			}
			// Without pushes the candidate must first find the record, and a poll later find that it
			// has expired.
			term := a.leadsAfter(wait, wait+2*lease)
			if term.Token() <= max(21, d.term) {
				s.Errorf("token %d", term.Token())
			}
		}
	}
	all.play(t)
}

// A leader that cannot learn of the reset leads until its deadline. No other candidate leads before
// that.
func TestResetWaitsForALeaderThatIsCutOff(t *testing.T) {
	all := scenes{}
	for name, d := range damaged {
		for early := range 4 {
			all[fmt.Sprint(name, early)] = func(s *scene) {
				f, far := s.faulty()
				_, old := far.elect("a")
				b := s.run("b")
				time.Sleep(lease/3 + time.Duration(early)*time.Second)
				f.Partition()
				s.put("%s", d.bytes)
				_, err := s.reset()
				s.is("Reset", err, nil)
				s.holds(old)
				s.follows(b.leads(time.Hour/2), old)
			}
		}
	}
	all.play(t)
}

func TestResetRefusesASoundRecord(t *testing.T) {
	all := scenes{}
	for name, prepare := range map[string]func(*scene){
		"nothing ever": func(*scene) {},
		"deleted":      func(s *scene) { s.put("x"); s.store.Delete(key) },
		"purged":       func(s *scene) { s.put("x"); s.store.Purge(key) },
		"held": func(s *scene) {
			s.put(`{"leaderID":"x","incarnation":"i","term":7,"leaseMillis":9000,"seq":1,"nonce":"n"}`)
		},
		"released": func(s *scene) {
			s.put(`{"leaderID":"x","incarnation":"i","term":7,"leaseMillis":9000,"seq":1,"nonce":"n","released":true}`)
		},
		"vacant": func(s *scene) { s.put(`{"term":7,"leaseMillis":9000,"nonce":"n"}`) },
		"of a later version": func(s *scene) {
			s.put(`{"leaderID":"x","incarnation":"i","term":7,"leaseMillis":9000,"seq":1,"nonce":"n","mood":"good"}`)
		},
		"reset before": func(s *scene) {
			s.put("x")
			_, err := s.reset()
			s.is("the first Reset", err, nil)
		},
	} {
		all[name] = func(s *scene) {
			prepare(s)
			before := s.read()
			wait, err := s.reset()
			if s.is("Reset", err, admin.ErrSound); wait != 0 {
				s.Errorf("it returned %v", wait)
			}
			if after := s.read(); after.Version != before.Version {
				s.Errorf("version %q became %q", before.Version, after.Version)
			}
		}
	}
	all.play(t)
}

func TestResetReportsStoreErrors(t *testing.T) {
	all := scenes{}
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
		all[name] = func(s *scene) {
			s.put("mine")
			f, far := s.faulty(faults.Plan{Timeout: time.Second})
			f.Next(c.op, c.fault)
			_, err := far.reset()
			s.is("Reset", err, c.want)
			_, again := far.reset()
			if errors.Is(again, admin.ErrSound) != c.reset || !c.reset && again != nil {
				s.Errorf("Reset once more: %v", again)
			}
		}
	}
	all.play(t)
}

func TestReset(t *testing.T) {
	scenes{
		"it does not overwrite a new record": func(s *scene) {
			s.put("mine")
			_, err := s.over(&hooked{Store: s.store, read: func(*driver.Entry) { s.put("mended") }}).reset()
			s.is("Reset", err, driver.ErrConflict)
			if e := s.read(); string(e.Value) != "mended" {
				s.Errorf("the store holds %q", e.Value)
			}
		},
		"it ends with its context": func(s *scene) {
			f, _ := s.faulty()
			f.Partition()
			ctx, cancel := context.WithTimeout(s.Context(), time.Second)
			defer cancel()
			_, err := admin.Reset(ctx, f, key, lease)
			s.is("Reset", err, context.DeadlineExceeded)
		},
		// A leader that reads the vacant record steps down, and then waits like the others.
		"the leader steps down": func(s *scene) {
			a, old := s.elect("a")
			time.Sleep(time.Second)
			s.put("mine")
			_, err := s.reset()
			s.is("Reset", err, nil)
			began := time.Now()
			within(s.T, lease/2, old.Context().Done(), "end of a's term")
			s.follows(a.leadsAfter(lease-time.Since(began), 5*lease), old)
		},
		// Members remember the longest lease that they have seen, and wait for it when the record of
		// its leader is deleted. An operator who knows that the leader is gone ends that.
		"EndLease ends long waits": func(s *scene) {
			f, far := s.faulty()
			gone, old := far.elect("gone", leaseOf(50*time.Minute))
			a := s.run("a", leaseOf(2*time.Second))
			time.Sleep(time.Minute)
			f.Partition()
			_ = gone.end() // its process is stopped
			s.store.Delete(key)
			a.idles(10 * time.Minute)
			term, err := admin.EndLease(s.Context(), s.store, key, "operator", time.Second)
			s.is("EndLease", err, nil)
			next := a.leads(10 * time.Second)
			if next.Token() <= term || term <= old.Token() {
				s.Errorf("tokens: %d, then the operator's %d, then %d", old.Token(), term, next.Token())
			}
		},
	}.play(t)
}

// A member that has seen a record with an unreadable lease must not wait for the longest possible
// lease after the record is gone.
func TestUnreadableLeaseIsForgottenWithItsRecord(t *testing.T) {
	forgotten := func(s *scene) {
		s.put("%s", damaged["an unreadable lease"].bytes)
		a := s.run("a")
		a.idles(time.Minute) // the lease may be running yet
		s.store.Purge(key)
		a.leads(4 * lease)
	}
	scenes{
		"the store's pushes": forgotten,
		"without pushes":     func(s *scene) { forgotten(s.over(silent(s.store))) },
	}.play(t)
}

func TestTermsThatAreNotCredible(t *testing.T) {
	scenes{
		// Earlier versions stopped an election forever after one record with the last term: no
		// candidate could claim above it, and every candidate remembered it after the key was
		// deleted.
		"the lease is waited out": func(s *scene) {
			a, old := s.elect("a")
			b := s.run("b")
			time.Sleep(lease)
			s.put(tooHigh, uint64(lastTerm), 1)
			put := time.Now()
			within(s.T, lease, old.Context().Done(), "end of a's term")
			var next *tenure.Term
			select {
			case next = <-a.won:
			case next = <-b.won:
			}
			if took := time.Since(put); took < lease || took > 3*lease {
				s.Errorf("elected after %v; the record shows a lease of %v", took, lease)
			}
			if s.follows(next, old); next.Token() > old.Token()+100 {
				s.Errorf("token %d after token %d", next.Token(), old.Token())
			}
			a.reports(tenure.EventAlarm, tenure.ErrMalformed)
		},
		"Status shows a malformed record": func(s *scene) {
			s.put(tooHigh, uint64(lastTerm), 1)
			got := s.new("a").sees("")
			if got.Record.Kind != admin.Malformed || got.Record.Lease != lease {
				s.Errorf("status %+v", got)
			}
			s.is("the problem", got.Record.Problem, tenure.ErrMalformed)
		},
		// If the store has no floor, a term from another handle's clock is credible, and the next
		// term is above it.
		"without a floor no credible term is lost": func(s *scene) {
			s = s.over(&hooked{Store: s.store, read: func(e *driver.Entry) { e.Floor, e.Pristine = 0, false }})
			now := uint64(time.Now().UnixMicro())
			for i, made := range []uint64{1 << 41, now, 2 * now} {
				s.put(tooHigh, made, i)
				a := s.run("a")
				if term := a.leads(3 * lease); term.Token() != made+1 {
					s.Errorf("token %d after term %d", term.Token(), made)
				}
				_ = a.end()
			}
			s.put(tooHigh, uint64(lastTerm), 4)
			s.elect("a")
		},
	}.play(t)
}
