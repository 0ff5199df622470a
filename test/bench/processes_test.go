//go:build integration && linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

func TestMain(m *testing.M) {
	natsd.Main()
	workerMain()
	if err := flag.Set("test.parallel", "8"); err != nil { // they wait far more than they work
		panic(err)
	}
	os.Exit(m.Run())
}

func openBench(t *testing.T) *bench {
	t.Helper()
	b, err := open(wait.Context(t), options{quick: true}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

// TestProcesses keeps the measuring itself from rotting: a stop, a cut and a crash, once each.
func TestProcesses(t *testing.T) {
	t.Parallel()
	b := openBench(t)
	bucket, err := b.bucket()
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.relayedCast("test", 3,
		command{Do: start, Bucket: bucket, Elections: []string{"test"}, Lease: time.Second, Ask: asking.ByTerm})
	defer c.dismiss()
	if err == nil {
		err = c.join(0, c.members...)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.successor(0, nil)
	if err == nil {
		_, err = c.handover()
	}
	if err == nil {
		err = c.cutOff(c.present(), true)
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
	if v := c.book.Judge(); !v.Safe() || v.Terms < 3 {
		t.Errorf("%+v", v)
	}
}

// TestObjects is the same for object storage, with and without peers, on a server in this process.
func TestObjects(t *testing.T) {
	t.Parallel()
	b := openBench(t)
	server, err := s3fake.Start(0, s3fake.Plan{}, "elections")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close) // after the two, which are parallel
	for _, peers := range []bool{true, false} {
		t.Run(kind(peers), func(t *testing.T) {
			t.Parallel()
			b.playObjects(t, scene{name: fmt.Sprint("test-", peers), members: 3, elections: 2, lease: 2 * time.Second, ask: asking.ByTerm,
				peers: peers, counted: true, wall: clockErrors, url: server.URL(), bucket: "elections"})
		})
	}
}

func (b *bench) playObjects(t *testing.T, s scene) {
	c, err := b.stage(s)
	defer c.dismiss()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.enthrone(); err != nil {
		t.Fatal(err)
	}
	late, err := c.orphan(c.role.Elections, c.present())
	for errors.Is(err, errBusy) {
		late, err = c.orphan(c.role.Elections, c.present())
	}
	if err != nil {
		t.Fatal(err)
	}
	if early(late) > 0 || len(late) > s.elections {
		t.Errorf("the next leaders came %v after the ends of the leases", late)
	}
	// Each candidate of a process asks once whether it may write.
	asked := float64(s.elections*len(c.members)) / steadyElections
	if got := c.bill(1); got.puts == 0 || got.gets == 0 || got.others > asked {
		t.Errorf("counted: %+v", got)
	}
	all, _ := c.journal.since(0)
	if e, ok := last(all, func(e entry) bool { return e.What == judged && e.Age.Abs() > 10*time.Second }); !ok {
		t.Errorf("no record looked as old as the clocks are wrong; the last was %+v", e)
	}
	// Answers are told in batches. There are more terms where a busy machine costs somebody the lease.
	wait.Until(t, "the answers of all terms", func() bool { return c.book.Judge().Terms >= 2*s.elections })
	if v := c.book.Judge(); !v.Safe() {
		t.Errorf("%+v", v)
	}
}

// TestFleet has processes come, die and go on a real server.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	t.Parallel()
	b := openBench(t)
	a, err := b.fleetCast(60, 3*time.Second)
	defer a.dismiss()
	if err != nil {
		t.Fatal(err)
	}
	found, err := a.play(a.begin, a.join, a.crash, a.leave)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		t.Log(m.what, m.value)
		if m.verdict > figures.Missed {
			t.Errorf("%s: %s", m.what, m.value)
		}
	}
	if loads := a.terms.loads(a.members); len(loads) != 2 || !a.terms.fair(a.members, 60) {
		t.Errorf("in the end they lead %v", loads)
	}
}

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
	wait.Until(t, "two consumers that overlap", func() bool {
		v, err := b.strikeAll(s, (*cast).own, (*cast).cutCoordinator, 1)
		if err != nil {
			t.Fatal(err)
		}
		return v.Stale > 0
	})
}

func (c *cast) usage(m *member) (usage, error) {
	mark := c.journal.mark()
	if err := m.tell(command{Do: use}); err != nil {
		return usage{}, err
	}
	e, err := c.await(mark, m, used)
	if err != nil {
		return usage{}, err
	}
	return *e.Usage, nil
}
