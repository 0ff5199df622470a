package tenure

import (
	"context"

	"github.com/tenure-go/tenure/driver"
)

// watch is the subscription to pushes. It is a convenience: without it, and in its silence, the machine reads.
type watch struct {
	// serial names the present wish for a watch; what belongs to an earlier one is not heard.
	serial uint64
	on     bool
	cancel func() // ends the set-up
	stop   func()
	retry  func() bool
}

// want begins or ends the watch. It runs under the member's lock, so the store is called elsewhere.
func (w *watch) want(m *member, store driver.Watcher, on bool) {
	if on == w.on {
		return
	}
	w.on = on
	w.serial++
	if on {
		w.begin(m, store)
		return
	}
	m.machine.Watching(false)
	w.cancel()
	if w.stop != nil {
		go w.stop()
	}
	if w.retry != nil {
		w.retry()
	}
	w.stop, w.retry = nil, nil
}

func (w *watch) begin(m *member, store driver.Watcher) {
	serial := w.serial
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.Renew)
	w.cancel = cancel
	go func() {
		defer cancel()
		stop, err := store.Watch(ctx, m.key, func(e driver.Entry) { w.see(m, serial, e) })
		m.step(func(Reading) { w.begun(m, store, serial, stop, err) })
	}()
}

func (w *watch) see(m *member, serial uint64, e driver.Entry) {
	cell := decode(e)
	m.step(func(now Reading) {
		if w.on && w.serial == serial {
			m.machine.Seen(now, cell)
		}
	})
}

// begun takes the answer of the store. A watch that could not be had is tried again with every renewal interval.
func (w *watch) begun(m *member, store driver.Watcher, serial uint64, stop func(), err error) {
	current := w.on && w.serial == serial
	switch {
	case err == nil && current:
		w.stop = stop
		m.machine.Watching(true)
	case err == nil:
		go stop()
	case current:
		m.report(EventTrouble, m.wrap("watch", err))
		w.retry = m.clock.AfterFunc(m.cfg.Renew, func() {
			m.step(func(Reading) {
				if w.on && w.serial == serial {
					w.begin(m, store)
				}
			})
		})
	}
}
