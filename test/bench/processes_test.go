//go:build integration && linux

package main

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) {
	natsd.Main()
	workerMain()
	if err := flag.Set("test.parallel", "8"); err != nil { // they mostly wait
		panic(err)
	}
	os.Exit(m.Run())
}

// try runs a trial at a site.
func try(t *testing.T, s *site, do func(*trial)) {
	t.Helper()
	t.Parallel()
	b, err := newBench(wait.Context(t), options{quick: true}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	found, err := b.try(s, do)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		t.Log(m.what, m.value)
		if m.verdict > figures.Missed {
			t.Error(m.what)
		}
	}
}

// life cuts, stops and kills leaders, and checks the results.
func life(t *testing.T, c *team) {
	c.electFirst()
	count := c.counter()
	cut(strike{}).strike(c, 0)
	stopped := c.stopLeader()
	killed := c.killLeaders(c.lastElected())
	if len(stopped) > len(c.role.Elections) || early(killed) > 0 {
		t.Errorf("next leaders %v after releases and %v after the ends of leases", stopped, killed)
	}
	sum := 0
	for _, kinds := range count() {
		for _, n := range kinds {
			sum += n
		}
	}
	if sum == 0 {
		t.Error("no request was counted")
	}
	_, old := crew.Last(c.journal.Since(0), func(e entry) bool {
		return e.What == judged && e.Age.Abs() > 10*time.Second
	})
	if old != (len(c.wall) > 0) {
		t.Errorf("some record looked as old as clocks are wrong: %t", old)
	}
	// Answers come in batches. A killed leader may not have sent its last one.
	terms := 2 * len(c.role.Elections)
	wait.Until(t, "the answers of all terms", func() bool { return c.book.Judge().Terms >= terms })
	if v := c.book.Judge(); !v.Safe() {
		t.Errorf("%+v", v)
	}
}

// TestEachSiteInEachMode checks the bench itself: a cut, a stop and a crash at each site, in each
// mode.
func TestEachSiteInEachMode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		site *site
		plan plan
	}{
		{&natsSite, plan{}},
		{&kafkaSite, plan{mode: logMode}},
		{&kafkaSite, plan{mode: grouped}},
		{&objectSite, plan{mode: peers, servers: &fakeObjects{}}},
		{&objectSite, plan{mode: polled, servers: &fakeObjects{}, wall: clockErrors}},
	} {
		t.Run(c.site.title+" "+c.plan.mode.name, func(t *testing.T) {
			try(t, c.site, func(trial *trial) {
				p := c.plan
				p.name, p.members, p.ask, p.relayed = "life", 3, asking.ByTerm, true
				p.elections, p.lease = 2, 2*time.Second
				life(t, trial.team(p))
			})
		})
	}
}

// TestFleet starts, kills and ends processes on a real server.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	try(t, &natsSite, func(trial *trial) {
		f := newFleet(trial, 60, 3*time.Second)
		f.measure()
		if loads := f.loads(); len(loads) != 2 || !f.fair() {
			t.Errorf("in the end they lead %v", loads)
		}
	})
}

// TestControl: consumers that rely only on the group overlap when the owner is cut off from the
// coordinator.
func TestControl(t *testing.T) {
	try(t, &kafkaSite, func(trial *trial) {
		x := cutCoordinator(strike{groups: always(2)})
		trial.report(controlled(x.control, func() witness.Verdict {
			return x.strikes(trial, grouped, x.beginControl, 1)
		}))
	})
}
