package neli

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// diary is a barrier that records its events.
type diary struct{ events []Event }

func (d *diary) barrier(e Event) { d.events = append(d.events, e) }

func (d *diary) expect(t *testing.T, events ...Event) {
	t.Helper()
	if !slices.Equal(d.events, events) {
		t.Errorf("got %v, want %v", d.events, events)
	}
	d.events = nil
}

func newMock(t *testing.T, barrier ...Barrier) MockNeli {
	t.Helper()
	m, err := NewMock(MockConfig{}, barrier...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func pulse(t *testing.T, n Neli, want bool) {
	t.Helper()
	if leads, err := n.Pulse(time.Second); leads != want || err != nil {
		t.Errorf("leads: %v, %v", leads, err)
	}
}

func TestMockFollowsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		m := newMock(t, d.barrier)
		pulse(t, m, false)
		m.AcquireLeader()
		if m.IsLeader() {
			t.Error("leads before a Pulse")
		}
		d.expect(t)
		pulse(t, m, true)
		d.expect(t, LeaderAcquired{})
		first := m.Token()
		m.FenceLeader()
		if !m.IsLeader() {
			t.Error("is fenced before a Pulse")
		}
		pulse(t, m, false)
		d.expect(t, LeaderFenced{})
		if m.IsLeader() || m.Token() != 0 || m.Term() != nil {
			t.Error("leads while it is fenced")
		}
		m.AcquireLeader()
		pulse(t, m, true)
		if m.Token() <= first {
			t.Errorf("token %d after %d", m.Token(), first)
		}
		m.RevokeLeader()
		pulse(t, m, false)
		d.expect(t, LeaderAcquired{}, LeaderRevoked{})
		m.AcquireLeader()
		m.RevokeLeader()
		pulse(t, m, false)
		d.expect(t)
	})
}

func TestMockWakesAPulseThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMock(t)
		time.AfterFunc(time.Minute+time.Millisecond, m.AcquireLeader)
		began := time.Now()
		leads, err := m.PulseCtx(t.Context())
		if !leads || err != nil || time.Since(began) != time.Minute+time.Millisecond {
			t.Errorf("leads %v after %v: %v", leads, time.Since(began), err)
		}
	})
}

func TestMockCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		m := newMock(t, d.barrier)
		m.AcquireLeader()
		var runs atomic.Int64
		p, err := m.Background(func() {
			runs.Add(1)
			time.Sleep(time.Second)
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		go func() { _ = m.Close() }()
		synctest.Wait()
		if m.State() != Closing || m.IsLeader() || m.Token() == 0 {
			t.Errorf("while a task is waited for: %v, leader %v, token %d", m.State(), m.IsLeader(), m.Token())
		}
		m.Await()
		if p.Await() != nil || p.Error() != nil || m.State() != Closed || m.IsLeader() || runs.Load() < 9 {
			t.Errorf("%v after %d runs; %v", m.State(), runs.Load(), p.Error())
		}
		d.expect(t, LeaderAcquired{}, LeaderRevoked{})
		m.AcquireLeader()
		if leads, err := m.Pulse(time.Second); leads || !errors.Is(err, ErrNonLivePulse) || m.Close() != nil {
			t.Errorf("after Close: %v, %v", leads, err)
		}
		d.expect(t)
	})
}

func TestMockPulseError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, mine := newMock(t), errors.New("mine")
		m.AcquireLeader()
		m.PulseError(mine)
		if leads, err := m.Pulse(0); !leads || !errors.Is(err, mine) {
			t.Errorf("%v, %v", leads, err)
		}
		pulse(t, m, true)
		m.PulseError(mine)
		p, err := m.Background(func() {})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Await(); !errors.Is(err, mine) || !errors.Is(p.Error(), mine) {
			t.Errorf("the pulser ends with %v", err)
		}
		p, _ = m.Background(func() { time.Sleep(time.Second) })
		p.Close()
		if p.Await() != nil {
			t.Error("a pulser that was closed has an error")
		}
		_ = m.Close()
	})
}

func TestMockRefusesInvalidUse(t *testing.T) {
	if _, err := NewMock(MockConfig{}, NopBarrier(), NopBarrier()); err == nil {
		t.Error("two barriers")
	}
	if _, err := NewMock(MockConfig{MinPollInterval: Duration(0)}); err == nil {
		t.Error("an interval of 0")
	}
	m := newMock(t, nil)
	if _, err := m.Background(nil); err == nil {
		t.Error("no task")
	}
	if _, err := m.PulseCtx(dead()); err != nil {
		t.Error(err)
	}
	if s := (MockConfig{}).String(); s == "" {
		t.Error("no text")
	}
	_ = m.Close()
}

func dead() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
