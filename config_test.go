package tenure_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestConfigNamesEveryProblemAtOnce(t *testing.T) {
	_, err := tenure.New(memory.New(), "", tenure.Config{
		ID: strings.Repeat("x", 300), Lease: 10 * time.Millisecond, Tuning: tenure.Tuning{Renew: 2 * time.Hour, Drift: 0.7, Splay: -time.Second},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"ID", "the name is empty", "Lease", "Renew", "Drift", "Splay"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}

func TestConfigErrorsAreOnePerProblem(t *testing.T) {
	store := memory.New()
	e, err := tenure.New(store, "job", tenure.Config{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	bad := tenure.Config{ID: strings.Repeat("x", 300), Lease: 2 * time.Hour, Tuning: tenure.Tuning{Splay: -time.Second, Retry: []time.Duration{0, -1}}}
	_, atNew := tenure.New(store, "", bad)
	atCheck := bad.Check(store, "")
	_, atNewGroup := tenure.NewGroup(store, bad)
	_, ofGroup := mustNewGroup(t, store, "a", func(c *tenure.Config) { c.Priority = 1 }).Election("", &manualNominator{})
	bad.ID = ""
	for what, c := range map[string]struct {
		err    error
		fields []string
	}{
		"New":              {atNew, []string{"Name", "ID", "Lease", "Tuning.Splay", "Tuning.Retry[1]"}},
		"Check":            {atCheck, []string{"Name", "ID", "Lease", "Tuning.Splay", "Tuning.Retry[1]"}},
		"NewGroup":         {atNewGroup, []string{"ID", "Lease", "Tuning.Splay", "Tuning.Retry[1]"}},
		"Group.Election":   {ofGroup, []string{"Name", "Priority"}},
		"Reconfigure":      {e.Reconfigure(func(c *tenure.Config) { *c = bad }), []string{"Lease", "Tuning.Splay", "Tuning.Retry[1]"}},
		"Reconfigure's ID": {e.Reconfigure(func(c *tenure.Config) { c.ID = "b" }), []string{"ID"}},
	} {
		var fields []string
		for _, err := range c.err.(interface{ Unwrap() []error }).Unwrap() {
			p, ok := errors.AsType[*tenure.ConfigError](err)
			if !ok {
				t.Fatalf("%s: %v is no ConfigError", what, err)
			}
			fields = append(fields, p.Field)
			if !strings.Contains(c.err.Error(), p.Error()) {
				t.Errorf("%s: %q is missing in %q", what, p, c.err)
			}
		}
		if !slices.Equal(fields, c.fields) {
			t.Errorf("%s: problems of %q, want %q", what, fields, c.fields)
		}
	}
	p, ok := errors.AsType[*tenure.ConfigError](e.Reconfigure(func(c *tenure.Config) { c.Lease = 2 * time.Hour }))
	want := tenure.ConfigError{Field: "Lease", Value: 2 * time.Hour, Problem: "is 2h0m0s", Remedy: "it must be from 50ms to 1h0m0s"}
	if !ok || *p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

// A problem that follows from another one or from a default is not reported. Neither is a negative
// time that follows from one.
func TestConfigErrorsNameOnlyCauses(t *testing.T) {
	for _, c := range []struct {
		why  string
		cfg  tenure.Config
		want string
	}{
		{"all defaults follow from the lease", tenure.Config{Lease: 2 * time.Hour}, "Lease is 2h0m0s; it must be from 50ms to 1h0m0s"},
		{"polling follows from renewing", tenure.Config{Tuning: tenure.Tuning{Renew: 2 * time.Hour}}, "Tuning.Renew is 2h0m0s; it must be from 1ms to 1h0m0s"},
		{"nothing of the lease is left", tenure.Config{Lease: time.Second, StopWithin: 2 * time.Second, Tuning: tenure.Tuning{Drift: 0.01, TimerLateness: 25 * time.Millisecond}},
			"Lease is 1s, too short for Renew (333.333333ms) and a margin of 2.045s for clock drift, " +
				"TimerLateness and StopWithin; lengthen Lease, or shorten Renew or StopWithin"},
	} {
		_, err := tenure.New(memory.New(), "job", c.cfg)
		if want := `tenure: election "job": ` + c.want; err == nil || err.Error() != want {
			t.Errorf("%s: got\n%v, want\n%s", c.why, err, want)
		}
	}
}

func TestConfigLimits(t *testing.T) {
	cases := []struct {
		name string
		cfg  tenure.Config
		bad  string // the field that the error names; empty: accepted
		why  string
	}{
		{"zero", tenure.Config{}, "", "every default fits the others"},
		{"none of all", tenure.Config{
			Nominator: &manualNominator{}, StopWithin: tenure.None, FinishWithin: tenure.None,
			Tuning: tenure.Tuning{
				Precedence: tenure.None, TimerLateness: tenure.None, Drift: tenure.None, Grace: tenure.None, Splay: tenure.None,
				Retry: []time.Duration{}, Backoff: func(int) time.Duration { return 0 },
			},
		}, "", "the documentation says so"},
		{"no renewals", tenure.Config{Tuning: tenure.Tuning{Renew: tenure.None}}, "Renew", "a lease must be renewed"},
		{"no polls", tenure.Config{Tuning: tenure.Tuning{Poll: tenure.None}}, "Poll", "a store that does not push must be read"},
		{"id with a space", tenure.Config{ID: "member 1"}, "", "an id is a label, not a key"},
		{"old renewal at 75 %", tenure.Config{Lease: 30 * time.Second, Tuning: tenure.Tuning{Renew: 22500 * time.Millisecond}}, "", "nats-kv elections renew so"},
		{"old least gap", tenure.Config{Lease: 30 * time.Second, Tuning: tenure.Tuning{Renew: 25 * time.Second}}, "", "5 s below the TTL was their limit"},
		{"old longest", tenure.Config{Lease: time.Hour, Tuning: tenure.Tuning{Renew: 45 * time.Minute}}, "", "their longest TTL"},
		{"lease below the store's", tenure.Config{Lease: 49 * time.Millisecond}, "Lease", "memory's least is 50 ms"},
		{"lease above the constant", tenure.Config{Lease: time.Hour + 1}, "Lease", "followers of others could not wait it out"},
		{"fractions of milliseconds", tenure.Config{Lease: time.Second + 1}, "Lease", "the record has whole milliseconds"},
		{"renewal at the deadline", tenure.Config{Lease: time.Second, Tuning: tenure.Tuning{Renew: 960 * time.Millisecond}}, "Renew", "no time to try"},
		{"stop eats the lease", tenure.Config{Lease: time.Second, StopWithin: 700 * time.Millisecond}, "StopWithin", "the remedy is named"},
		{"grace beyond the lease", tenure.Config{Tuning: tenure.Tuning{Grace: time.Minute}}, "Grace", "it would never be told"},
		{"negative finish", tenure.Config{FinishWithin: -time.Second}, "FinishWithin", ""},
		{"metadata", tenure.Config{Metadata: map[string]string{"x": strings.Repeat("y", 1024)}}, "Metadata", "records are small"},
		{"quotes", tenure.Config{Metadata: map[string]string{"x": strings.Repeat("<", 1000)}}, "Metadata", "in JSON they are too long for a record, and nobody could lead"},
		{"no number", tenure.Config{Tuning: tenure.Tuning{Drift: math.NaN()}}, "Drift", "no margin could be made of it"},
		{"a priority beside a nominator", tenure.Config{Nominator: &manualNominator{}, Priority: 1}, "Priority", "one thing decides"},
		{"nominees alone, and none", tenure.Config{NomineeOnly: true}, "NomineeOnly", "nobody would lead"},
		{"a precedence without a nominator", tenure.Config{Tuning: tenure.Tuning{Precedence: time.Second}}, "", "it has no effect"},
		{"a negative precedence", tenure.Config{Tuning: tenure.Tuning{Precedence: -time.Second}}, "Precedence", ""},
		{"invalid address", tenure.Config{Address: "\xff"}, "Address", "JSON has no such strings"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := tenure.New(memory.New(), "job", c.cfg)
			if c.bad == "" && err != nil {
				t.Errorf("refused, though %s: %v", c.why, err)
			}
			if c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)) {
				t.Errorf("want an error that names %s (%s), got %v", c.bad, c.why, err)
			}
		})
	}
}

func TestMarginFollowsRuleL3(t *testing.T) {
	c := tenure.Config{Lease: 10 * time.Second, Tuning: tenure.Tuning{Drift: 0.01, TimerLateness: 50 * time.Millisecond}, StopWithin: time.Second}
	least := 10 * time.Second * 2 / 101
	if got := c.Margin(); got < least+1050*time.Millisecond || got > least+1051*time.Millisecond {
		t.Errorf("margin %v", got)
	}
}

// TestNone: each of these values selects none, where 0 selects a default.
func TestNone(t *testing.T) {
	none := tenure.Config{Tuning: tenure.Tuning{Drift: tenure.None, TimerLateness: tenure.None}}
	if m := none.Margin(); m != 0 {
		t.Errorf("without drift and lateness the margin is %v", m)
	}
	synctest.Test(t, func(t *testing.T) {
		work := make(chan struct{})
		a := start(t, mustNew(t, memory.New(), "a", func(c *tenure.Config) { c.FinishWithin = tenure.None }),
			func(context.Context, *tenure.Term) error { <-work; return nil })
		term := within(t, time.Minute, a.won, "term")
		a.stop()
		within(t, 2*time.Millisecond, term.Context().Done(), "end of the hard context")
		close(work)
	})
}

// leaseInStore returns the lease of the record in the cell.
func leaseInStore(t *testing.T, store operated) time.Duration {
	t.Helper()
	entry, err := store.Read(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ LeaseMillis int64 }
	if err := json.Unmarshal(entry.Value, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.LeaseMillis) * time.Millisecond
}

func reconfigure(t *testing.T, e *tenure.Election, change func(*tenure.Config)) {
	t.Helper()
	if err := e.Reconfigure(change); err != nil {
		t.Fatal(err)
	}
}

// configOf returns the settings as they were given.
func configOf(t *testing.T, e *tenure.Election) (cfg tenure.Config) {
	t.Helper()
	reconfigure(t, e, func(c *tenure.Config) { cfg = *c })
	return cfg
}

func TestChangedLeaseTakesEffectWithTheNextRenewal(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, term := elect(t, store, "a", nil)
		before := term.Remaining()
		reconfigure(t, a.election, func(c *tenure.Config) { c.Lease = 6 * time.Second })
		if now := term.Remaining(); now != before {
			t.Errorf("%v were left of the term, and %v after the lease was shortened", before, now)
		}
		if got := leaseInStore(t, store); got != lease {
			t.Errorf("a lease of %v is in the store before any renewal", got)
		}
		time.Sleep(2*time.Second + time.Millisecond) // a third of the new lease
		if got := leaseInStore(t, store); got != 6*time.Second {
			t.Errorf("a lease of %v is in the store after the renewal", got)
		}
		if left := term.Remaining(); left > 6*time.Second || left <= 0 {
			t.Errorf("%v are left of a lease of 6 s", left)
		}
	})
}

// Work that needs more time to stop must have it from now on, not from the next renewal.
func TestLargerStopWithinTakesEffectAtOnce(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, term := elect(t, store, "a", nil)
		time.Sleep(lease + time.Second) // no renewal is under way
		renewed := term.Renewed()
		reconfigure(t, a.election, func(c *tenure.Config) { c.StopWithin = time.Second })
		synctest.Wait()
		if left := term.Remaining(); !closed(renewed) || left < lease/2 {
			t.Errorf("renewed: %v; %v are left", closed(renewed), left)
		}
	})
}

// A shorter lease does not shorten a lease that was promised. The successor waits for the lease in
// the record, not for its own.
func TestFollowerWithAShorterLeaseWaitsForTheLeaseInTheRecord(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faulty(t, store)
		_, term := elect(t, f, "a", nil)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(30 * time.Second)
		reconfigure(t, b.election, func(c *tenure.Config) { c.Lease = 3 * time.Second })
		f.Partition()
		within(t, time.Minute, b.won, "term of b")
		if err := term.Err(); err == nil {
			t.Errorf("b leads while %v are left of a's term", term.Remaining())
		}
		f.Heal()
	})
}

func TestReconfigureReportsAllProblemsAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustNew(t, memory.New(), "a", nil)
		before := configOf(t, e)
		err := e.Reconfigure(func(c *tenure.Config) {
			c.Lease, c.Tuning.Drift, c.Tuning.Retry = 2*time.Hour, 0.9, []time.Duration{3 * time.Hour}
		})
		for _, field := range []string{"Lease", "Drift", "Retry[0]"} {
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%v does not name %s", err, field)
			}
		}
		if err := e.Reconfigure(func(c *tenure.Config) { c.ID = "b" }); err == nil || !strings.Contains(err.Error(), `cannot be changed to "b"`) {
			t.Errorf("changing the ID: %v", err)
		}
		if now := configOf(t, e); now.Lease != before.Lease || now.ID != "a" {
			t.Errorf("a refused change left %+v", now)
		}
	})
}

// A setting that derives from a changed field follows it. A setting that was given stays.
func TestReconfigureSeesTheGivenSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		e := mustNew(t, store, "a", func(c *tenure.Config) { c.Metadata = map[string]string{"k": "v"} })
		cfg := configOf(t, e)
		if cfg.Tuning.Renew != 0 || cfg.ID != "a" || cfg.Metadata["k"] != "v" {
			t.Errorf("given %+v", cfg)
		}
		cfg.Metadata["k"] = "changed"
		if configOf(t, e).Metadata["k"] != "v" {
			t.Error("the caller's map is the election's")
		}
	})
}

func TestReconfigureConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		ctx, cancel := context.WithCancel(t.Context())
		var members sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			e := mustNew(t, store, id, func(c *tenure.Config) { c.Lease = 200 * time.Millisecond })
			members.Go(func() { _ = e.Run(ctx, holdOn) })
			members.Go(func() {
				for i := range 200 {
					err := e.Reconfigure(func(c *tenure.Config) {
						c.Lease = time.Duration(150+i) * time.Millisecond
						c.Tuning.NoWatch, c.Address = i%3 == 0, id
					})
					if err != nil {
						t.Error(err)
					}
					_ = e.Status()
					// Elections go on during the changes.
					time.Sleep(time.Duration(i%3) * time.Millisecond)
				}
			})
		}
		seen := mustNew(t, store, "observer", func(c *tenure.Config) { c.Lease = time.Second })
		wait, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if _, err := seen.Wait(wait, func(s tenure.Status) bool { return s.Leader.Address != "" }); err != nil {
			t.Errorf("no changed address was published: %v", err)
		}
		cancel()
		members.Wait()
	})
}

func TestStatusShowsHowAMemberFollows(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		elect(t, store, "a", nil)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		follows := func(when string, pushed bool) {
			t.Helper()
			s := b.election.Status()
			if s.Pushed != pushed || !s.Confirmed || s.Leader.ID != "a" || s.LeaderSince.IsZero() {
				t.Errorf("%s: pushed %v, want %v; %+v", when, s.Pushed, pushed, s)
			}
		}
		time.Sleep(2 * lease)
		_, watched := store.(*memory.Store)
		follows("at first", watched)
		reconfigure(t, b.election, func(c *tenure.Config) { c.Tuning.NoWatch = true })
		time.Sleep(3 * lease)
		follows("without a watch", false)
		reconfigure(t, b.election, func(c *tenure.Config) { c.Tuning.NoWatch = false })
		time.Sleep(lease) // when a watch begins, a read shows no new renewal
		follows("with the watch again", watched)
	})
}

// The library holds no lock during change, and no change is lost.
func TestReconfigureWithinAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustNew(t, memory.New(), "a", nil)
		calls := 0
		reconfigure(t, e, func(outer *tenure.Config) {
			if calls++; calls == 1 {
				reconfigure(t, e, func(inner *tenure.Config) { inner.Address = "inner" })
			}
			outer.Lease = time.Minute
		})
		if c := configOf(t, e); calls != 2 || c.Address != "inner" || c.Lease != time.Minute {
			t.Errorf("after %d calls: %q, %v", calls, c.Address, c.Lease)
		}
	})
}
