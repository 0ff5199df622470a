package tenure_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/nomination"
	"github.com/tenure-go/tenure/timing"
)

func TestConfigErrorsAreOnePerProblem(t *testing.T) {
	store := memory.New()
	e, err := tenure.New(store, "job", tenure.Config{ID: "a"})
	nominate := nomination.By(&manualNominator{})
	g, atGroup := tenure.NewGroup(store, tenure.Config{Priority: 1, Nomination: nominate})
	if err = errors.Join(err, atGroup); err != nil {
		t.Fatal(err)
	}
	bad := tenure.Config{ID: strings.Repeat("x", 300), Lease: 2 * time.Hour, Tuning: tenure.Tuning{Poll: -time.Second, Retry: []time.Duration{0, -1}}}
	_, atNew := tenure.New(store, "", bad)
	atCheck := bad.Check(store, "")
	_, atNewGroup := tenure.NewGroup(store, bad)
	_, ofGroup := g.Election("")
	bad.ID = ""
	for what, c := range map[string]struct {
		err    error
		fields []string
	}{
		"New":              {atNew, []string{"Name", "ID", "Lease", "Tuning.Poll", "Tuning.Retry[1]"}},
		"Check":            {atCheck, []string{"Name", "ID", "Lease", "Tuning.Poll", "Tuning.Retry[1]"}},
		"NewGroup":         {atNewGroup, []string{"ID", "Lease", "Tuning.Poll", "Tuning.Retry[1]"}},
		"Group.Election":   {ofGroup, []string{"Name", "Priority"}},
		"Reconfigure":      {e.Reconfigure(func(c *tenure.Config) { *c = bad }), []string{"Lease", "Tuning.Poll", "Tuning.Retry[1]"}},
		"Reconfigure's ID": {e.Reconfigure(func(c *tenure.Config) { c.ID = "b" }), []string{"ID"}},
	} {
		var fields []string
		all, ok := errors.AsType[*tenure.ConfigError](c.err)
		if !ok {
			t.Fatalf("%s: %v is no ConfigError", what, c.err)
		}
		for _, p := range all.Fields {
			fields = append(fields, p.Field)
			if !strings.Contains(c.err.Error(), p.Error()) {
				t.Errorf("%s: %q is missing in %q", what, p.Error(), c.err)
			}
		}
		if !slices.Equal(fields, c.fields) {
			t.Errorf("%s: problems of %q, want %q", what, fields, c.fields)
		}
	}
	p, ok := errors.AsType[*tenure.FieldError](e.Reconfigure(func(c *tenure.Config) { c.Lease = 2 * time.Hour }))
	want := tenure.FieldError{Field: "Lease", Value: 2 * time.Hour, Problem: "is 2h0m0s", Remedy: "it must be from 50ms to 1h0m0s"}
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
	nominate := nomination.By(&manualNominator{}).Nominator
	cases := []struct {
		name string
		cfg  tenure.Config
		bad  string // the field that the error names; empty: accepted
		why  string
	}{
		{"zero", tenure.Config{}, "", "every default fits the others"},
		{"none of all", tenure.Config{
			Nomination: nomination.Config{Nominator: nominate, Precedence: -1}, FinishWithin: -time.Second,
			Tuning: tenure.Tuning{
				TimerLateness: -1, Drift: -0.1,
				Retry: []time.Duration{}, Backoff: func(int) time.Duration { return 0 },
			},
		}, "", "the documentation says so"},
		{"less than no time to stop", tenure.Config{StopWithin: -time.Second}, "StopWithin", "a difference may be negative by mistake"},
		{"a negative grace", tenure.Config{Tuning: tenure.Tuning{Grace: -1}}, "Grace", "likewise"},
		{"a negative splay", tenure.Config{Tuning: tenure.Tuning{Splay: -1}}, "Splay", "likewise"},
		{"no renewals", tenure.Config{Tuning: tenure.Tuning{Renew: -1}}, "Renew", "a lease must be renewed"},
		{"no polls", tenure.Config{Tuning: tenure.Tuning{Poll: -1}}, "Poll", "a store that does not push must be read"},
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
		{"metadata", tenure.Config{Metadata: map[string]string{"x": strings.Repeat("y", 1024)}}, "Metadata", "records are small"},
		{"quotes", tenure.Config{Metadata: map[string]string{"x": strings.Repeat("<", 1000)}}, "Metadata", "in JSON they are too long for a record, and nobody could lead"},
		{"a clock off by 70 %", tenure.Config{Tuning: tenure.Tuning{Drift: 0.7}}, "Drift", "nothing of a lease would be left"},
		{"no number", tenure.Config{Tuning: tenure.Tuning{Drift: math.NaN()}}, "Drift", "no margin could be made of it"},
		{"a priority beside a nominator", tenure.Config{Nomination: nomination.Config{Nominator: nominate}, Priority: 1}, "Priority", "one thing decides"},
		{"nominees alone, and none", tenure.Config{Nomination: nomination.Config{Only: true}}, "Nomination.Only", "nobody would lead"},
		{"a precedence without a nominator", tenure.Config{Nomination: nomination.Config{Precedence: time.Second}}, "", "it has no effect"},
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
	if got := timing.Margin(c); got < least+1050*time.Millisecond || got > least+1051*time.Millisecond {
		t.Errorf("margin %v", got)
	}
}

// TestNegativeIsNone: a negative value means none, where 0 selects a default.
func TestNegativeIsNone(t *testing.T) {
	none := tenure.Config{Tuning: tenure.Tuning{Drift: -1, TimerLateness: -1}}
	if m := timing.Margin(none); m != 0 {
		t.Errorf("without drift and lateness the margin is %v", m)
	}
	play(t, func(s *scene) {
		work := make(chan struct{})
		a := s.new("a", finishWithin(-1)).start(func(context.Context, *tenure.Term) error { <-work; return nil })
		term := a.leads()
		a.stop()
		s.ended(term, 2*time.Millisecond, tenure.ErrOverdue)
		close(work)
	})
}

func TestReconfigure(t *testing.T) {
	scenes{
		"problems change nothing": func(s *scene) {
			e := s.new("a")
			before := e.config()
			err := e.Reconfigure(func(c *tenure.Config) { c.Lease, c.ID = 2*time.Hour, "b" })
			if err == nil || !strings.Contains(err.Error(), `cannot be changed to "b"`) {
				s.Errorf("Reconfigure returned %v", err)
			}
			if now := e.config(); now.Lease != before.Lease || now.ID != "a" {
				s.Errorf("a refused change left %+v", now)
			}
		},
		// A setting that derives from a changed field follows it. A setting that was given stays.
		"it sees the given settings": func(s *scene) {
			e := s.new("a", func(c *tenure.Config) { c.Metadata = map[string]string{"k": "v"} })
			cfg := e.config()
			if cfg.Tuning.Renew != 0 || cfg.ID != "a" || cfg.Metadata["k"] != "v" {
				s.Errorf("given %+v", cfg)
			}
			cfg.Metadata["k"] = "changed"
			if e.config().Metadata["k"] != "v" {
				s.Error("the caller's map is the election's")
			}
		},
		// The library holds no lock during change, and no change is lost.
		"within a change": func(s *scene) {
			e := s.new("a")
			calls := 0
			e.reconfigure(func(outer *tenure.Config) {
				if calls++; calls == 1 {
					e.reconfigure(func(inner *tenure.Config) { inner.Address = "inner" })
				}
				outer.Lease = time.Minute
			})
			if c := e.config(); calls != 2 || c.Address != "inner" || c.Lease != time.Minute {
				s.Errorf("after %d calls: %q, %v", calls, c.Address, c.Lease)
			}
		},
		"concurrently": func(s *scene) {
			all := s.runAll("a b c", leaseOf(200*time.Millisecond))
			var changes sync.WaitGroup
			for id, e := range all {
				changes.Go(func() {
					for i := range 200 {
						e.reconfigure(func(c *tenure.Config) {
							c.Lease = time.Duration(150+i) * time.Millisecond
							c.Tuning.NoWatch, c.Address = i%3 == 0, id
						})
						_ = e.Status()
						// Elections go on during the changes.
						time.Sleep(time.Duration(i%3) * time.Millisecond)
					}
				})
			}
			seen := s.new("observer", leaseOf(time.Second))
			seen.waits(func(s tenure.Status) bool { return s.Leader.Address != "" })
			changes.Wait()
		},
		"Status shows how a member follows": func(s *scene) {
			s.elect("a")
			b := s.run("b")
			follows := func(when string, pushed bool) {
				s.Helper()
				got := b.Status()
				if got.Pushed != pushed || !got.Confirmed || got.Leader.ID != "a" || got.LeaderSince.IsZero() {
					s.Errorf("%s: pushed %v, want %v; %+v", when, got.Pushed, pushed, got)
				}
			}
			time.Sleep(2 * lease)
			_, watched := s.store.(*memory.Store)
			follows("at first", watched)
			b.reconfigure(func(c *tenure.Config) { c.Tuning.NoWatch = true })
			time.Sleep(3 * lease)
			follows("without a watch", false)
			b.reconfigure(func(c *tenure.Config) { c.Tuning.NoWatch = false })
			time.Sleep(lease) // when a watch begins, a read shows no new renewal
			follows("with the watch again", watched)
		},
	}.play(t)
}
