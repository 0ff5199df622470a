package tenure_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
			if r := s.record(); r.LeaderID != "" || r.Lease != wait || r.Term < max(21, d.term) {
				s.Errorf("the vacant record is %+v", r)
			}
			// Without pushes the candidate must first find the record, and a poll later find that
			// it has expired.
			term := a.leadsAfter(wait, wait+2*lease)
			if term.Token() <= max(21, d.term) {
				s.Errorf("token %d", term.Token())
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
		"it refuses a sound record": func(s *scene) {
			s.put("x")
			_, err := s.reset()
			s.is("the first Reset", err, nil)
			before := s.read()
			wait, err := s.reset()
			s.is("the second", err, admin.ErrSound)
			if after := s.read(); wait != 0 || after.Version != before.Version {
				s.Errorf("it returned %v; version %q became %q", wait, before.Version, after.Version)
			}
		},
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
		// Members remember the longest lease that they have seen, and wait for it when the record
		// of its leader is deleted. An operator who knows that the leader is gone ends that.
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

func TestTermsThatAreNotCredible(t *testing.T) {
	scenes{
		"Status shows a malformed record": func(s *scene) {
			s.put(tooHigh, uint64(lastTerm), 1)
			got := s.new("a").sees("")
			if got.Record.Kind != admin.Malformed || got.Record.Lease != lease {
				s.Errorf("status %+v", got)
			}
			s.is("the problem", got.Record.Problem, damage(driver.Malformed))
		},
	}.play(t)
}
