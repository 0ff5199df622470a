package protocol

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/record"
)

// Some of these tests change settings during an open term. The simulation changes only the lease.

func at(d time.Duration) clock.Reading {
	return clock.Reading{Instant: clock.Instant{Mono: d, Raw: d, Boot: d}, Wall: time.Unix(1, 0).Add(d)}
}

func settings(lease, stopWithin time.Duration) Config {
	dice, renew := uint64(0), lease/5
	return Config{
		ID: "n", Lease: lease, Renew: renew, StopWithin: stopWithin,
		Budget:       lease - Margin(lease, 0.01, TimerLateness(lease), stopWithin),
		FinishWithin: 10 * time.Second, Poll: renew, PollStable: lease,
		Retry:     []time.Duration{0, min(100*time.Millisecond, renew/4), min(time.Second, renew/2)},
		HeadStart: 250 * time.Millisecond, Rand: func() uint64 { dice++; return dice * 0x9e3779b97f4a7c15 },
	}
}

func leading(t testing.TB, c Config) *Machine {
	t.Helper()
	m := New(&c, "i")
	m.Campaign(at(0), 0)
	m.ReadDone(at(0), m.Next(at(0)).Op.ID, Cell{Kind: Absent, Pristine: true, Version: "never"}, Applied, nil)
	m.WriteDone(at(0), m.Next(at(0)).Op.ID, "v1", Applied, nil)
	m.Next(at(0))
	if m.Phase() != Leading {
		t.Fatal("it does not lead")
	}
	return m
}

// reconfigure gives a machine other settings. The machine keeps its random numbers, since nonces
// must not recur.
func reconfigure(m *Machine, c Config) {
	c.Rand = m.cfg.Rand
	m.Reconfigure(&c)
}

// While the store fails, the short lease that is held decides how often the leader tries, not the
// long lease that is configured.
func TestLongerLeaseDoesNotSlowRetriesOfAShortOne(t *testing.T) {
	tries := func(change func(*Machine)) int {
		m := leading(t, settings(2*time.Second, 0))
		change(m)
		n := 0
		for now := time.Duration(0); m.Phase() == Leading; now += 5 * time.Millisecond {
			m.Tick(at(now))
			op := m.Next(at(now)).Op
			switch {
			case op == nil:
			case op.Write:
				n++
				m.WriteDone(at(now), op.ID, "", Unknown, nil)
			default:
				n++
				m.ReadDone(at(now), op.ID, Cell{}, Unknown, nil)
			}
		}
		return n
	}
	before := tries(func(*Machine) {})
	if n := tries(func(m *Machine) { reconfigure(m, settings(time.Minute, 0)) }); n < before {
		t.Errorf("%d tries with a lengthened lease, %d without", n, before)
	}
}

func TestIntervalsAboveTheLeaseHaveNoEffectOnAHeadStart(t *testing.T) {
	c := settings(15*time.Second, 0)
	c.Poll, c.PollStable = time.Hour, time.Hour
	m := New(&c, "i")
	m.Campaign(at(0), 0)
	r := record.Record{
		LeaderID: "other", Incarnation: "o", Term: 5, Seq: 9, Nonce: "x", Lease: 15 * time.Second, Released: true, Successor: "gone",
	}
	m.ReadDone(at(0), m.Next(at(0)).Op.ID, Cell{Kind: Valid, Version: "v", Record: r, Floor: 5}, Applied, nil)
	if todo := m.Next(at(0)); todo.Wake > 30*time.Second {
		t.Errorf("a successor that is gone is given %v", todo.Wake)
	}
}

// TestUnsoundReleaseIsReadAgainAfterTheWait: silence is no proof that the release still stands.
func TestUnsoundReleaseIsReadAgainAfterTheWait(t *testing.T) {
	c := settings(15*time.Second, 0)
	m := New(&c, "i")
	m.Campaign(at(0), 0)
	released := Cell{Kind: Valid, Version: "v", Unproven: true, Record: record.Record{
		LeaderID: "b", Incarnation: "b1", Term: 3, Seq: 9, Nonce: "n", Lease: c.Lease, Released: true,
	}}
	read := time.Duration(-1)
	for now := time.Duration(0); now < 3*c.Lease; now += 10 * time.Millisecond {
		m.Tick(at(now))
		op := m.Next(at(now)).Op
		switch {
		case op == nil:
		case !op.Write:
			read = now
			m.ReadDone(at(now), op.ID, released, Applied, nil)
		case read < c.Lease:
			t.Fatalf("it writes at %v, and read last at %v", now, read)
		default:
			return
		}
	}
	t.Fatal("it never writes")
}

// TestFailuresEndWithTheirTerm: the last store call succeeded, so the member is well.
func TestFailuresEndWithTheirTerm(t *testing.T) {
	c := settings(15*time.Second, 0)
	m := leading(t, c)
	now := time.Duration(0)
	for failures := 0; m.Phase() == Leading; now += 10 * time.Millisecond {
		m.Tick(at(now))
		op := m.Next(at(now)).Op
		switch {
		case op == nil:
		case failures < 3:
			failures++
			unanswered(m, at(now), op)
		case op.Write:
			m.WriteDone(at(now), op.ID, "", Conflict, nil)
		default:
			m.ReadDone(at(now), op.ID, Cell{Kind: Valid, Version: "w", Record: record.Record{
				LeaderID: "b", Incarnation: "b1", Term: 9, Seq: 1, Nonce: "n", Lease: c.Lease,
			}}, Applied, nil)
		}
	}
	if m.Failures() != 3 {
		t.Fatalf("%d failures before the work has stopped", m.Failures())
	}
	m.Finish(at(now), "", false, 0)
	m.Next(at(now))
	if m.Phase() != Idle || m.Failures() != 0 {
		t.Errorf("%v with %d failures", m.Phase(), m.Failures())
	}
}

// unanswered leaves the outcome of an operation open.
func unanswered(m *Machine, now clock.Reading, op *Op) {
	if op.Write {
		m.WriteDone(now, op.ID, "", Unknown, nil)
		return
	}
	m.ReadDone(now, op.ID, Cell{}, Unknown, nil)
}
