package tenure

import (
	"context"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/metrics"
)

// watch is the subscription to pushes. Without it, or if no push comes, the machine reads.
type watch struct {
	// serial is the number of the present subscription. Changes for an earlier one are ignored.
	serial uint32
	active bool
	lost   bool   // the store has said that it pushes no longer
	end    func() // ends the set-up, the watch, or the wait for another try
}

// setActive begins or ends the watch. It runs under the runner's lock, so the store is called
// elsewhere.
func (w *watch) setActive(m *runner, on bool) {
	if on == w.active {
		return
	}
	w.active, w.lost = on, false
	w.serial++
	if on {
		w.begin(m)
		return
	}
	m.machine.Watching(false)
	go w.end()
	w.end = nil
}

func (w *watch) begin(m *runner) {
	serial := w.serial
	ctx, cancel := context.WithTimeout(context.Background(), m.settings.machine.Renew)
	w.end = cancel
	m.calls.start(false, func() {
		defer cancel()
		began := m.clock.Now()
		stop, err := m.watcher.Watch(ctx, m.key, func(e driver.Entry) { m.pushed(serial, e) })
		m.step(func(now clock.Reading) {
			m.meter.called(metrics.Watch, err, now.LeaderSince(began.Instant))
			w.started(m, serial, stop, err)
		})
	})
}

// pushed passes a change that the store pushed to the machine.
func (m *runner) pushed(serial uint32, e driver.Entry) {
	cell := m.decode(e)
	m.step(func(now clock.Reading) {
		w := &m.watch
		if !w.active || w.serial != serial {
			return
		}
		if e.Lost != nil {
			w.lose(m, e.Lost)
			return
		}
		m.machine.Seen(now, cell)
		if w.lost {
			w.lost = false
			m.machine.Watching(true) // after Seen: the election reads, whatever this push showed
		}
	})
}

// lose makes the election poll until the next push. Stores whose members push report the loss of
// each connection themselves.
func (w *watch) lose(m *runner, why error) {
	w.lost = true
	m.machine.Watching(false)
	m.meter.called(metrics.Watch, why, 0)
	if driver.AbilitiesOf(m.store).Peers == nil {
		m.report(EventTrouble, m.term, m.wrap("watch", why))
	}
}

// started takes the store's answer. If the watch failed, it is tried again after each renewal
// interval.
func (w *watch) started(m *runner, serial uint32, stop func(), err error) {
	current := w.active && w.serial == serial
	switch {
	case err == nil && current:
		w.end = stop
		m.machine.Watching(!w.lost)
	case err == nil:
		go stop()
	case current:
		m.report(EventTrouble, m.term, m.explainTimeout(m.wrap("watch", err)))
		retry := m.clock.AfterFunc(m.settings.machine.Renew, func() {
			m.step(func(clock.Reading) {
				if w.active && w.serial == serial {
					w.begin(m)
				}
			})
		})
		w.end = func() { retry() }
	}
}
