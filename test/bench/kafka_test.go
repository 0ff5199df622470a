package main

import (
	"io"
	"testing"
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
)

// TestLogs: a stop, a cut and a crash on Kafka, once each, in log mode and with a group that nominates.
func TestLogs(t *testing.T) {
	t.Parallel()
	b := openBench(t)
	for _, session := range []time.Duration{0, groupSession} {
		s := scene{name: "test", members: 3, elections: 1, lease: logLease, ask: asking.ByTerm, relayed: true, session: session}
		t.Run(s.mode(), func(t *testing.T) {
			t.Parallel()
			c, err := b.logStage(s)
			defer c.dismiss()
			if err != nil {
				t.Fatal(err)
			}
			c.playLogs(t)
		})
	}
}

func (c *cast) playLogs(t *testing.T) {
	_, err := c.enthrone()
	c.role.Spread, c.ready = 0, time.Second // the group is at rest
	if err == nil {
		_, err = c.handover()
	}
	if err == nil {
		err = c.cutOffAWhile(c.present(), true)
	}
	if err == nil {
		var f failover
		if f, _, err = c.failover(); err == nil && f.late < 0 {
			t.Errorf("the next leader came %v after the end of the lease", f.late)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if u, err := c.usage(c.present()); err != nil || u.Requests["Fetch"] == 0 || u.Requests["Produce"] == 0 {
		t.Errorf("a leader made the requests %v, %v", u.Requests, err)
	}
	if v := c.book.Judge(); !v.Safe() || v.Terms < 3 {
		t.Errorf("%+v", v)
	}
}

// TestControl: consumers that go by the group alone are found to overlap when the owner's way to the coordinator is cut.
func TestControl(t *testing.T) {
	t.Parallel()
	b := openBench(t)
	s := scene{members: 3, elections: 1, relayed: true, session: groupSession}
	v, err := b.strikeAll(s, (*cast).own, (*cast).cutCoordinator, 1)
	if err != nil {
		t.Fatal(err)
	}
	if v.Stale == 0 {
		t.Errorf("%+v", v)
	}
}

// TestReap: kept is where nobody was elected since, and a write counts from when it was sent.
func TestReap(t *testing.T) {
	f := &field{cast: &cast{b: &bench{log: io.Discard}, journal: newJournal()}, plots: []plot{{election: "e"}, {election: "other"}}}
	say := func(r report) {
		r.Election = "e"
		f.journal.add(entry{"a", r})
	}
	say(report{What: leads, At: 10})
	say(report{What: wrote, At: 20, Until: 25})
	say(report{What: wrote, At: 40, Until: 60}) // sent before
	say(report{What: wrote, At: 70, Until: 145})
	say(report{What: wrote, At: 150, Until: 155})
	got := f.reap(50)[0]
	if !got.kept || got.back != 145-50 || got.gap != 145-60 {
		t.Errorf("%+v", got)
	}
	say(report{What: leads, At: 160})
	if all := f.reap(50); all[0].kept || !all[1].kept {
		t.Errorf("%+v", all)
	}
}

func TestRates(t *testing.T) {
	r := rates{"Produce": 12, "Fetch": 121.6, "Metadata": 0}
	if got, want := r.String(), "Fetch 122, Produce 12"; got != want || r.sum() != 133.6 {
		t.Errorf("%s, %v; want %s", got, r.sum(), want)
	}
}

// TestParts: each part of a broker has one line.
func TestParts(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range parts([]time.Duration{20 * time.Second, 10 * time.Second}) {
		seen[p.String()] = true
	}
	if len(seen) != 12 || !seen["lease 10.0 s, the controller frozen: kept"] {
		t.Error(seen)
	}
}
