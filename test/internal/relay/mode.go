package relay

import (
	"fmt"
	"time"
)

// mode says what happens to bytes.
type mode int

const (
	passing mode = iota
	holding
	swallowing
	muting
	refusing
)

// Blackhole swallows everything in both directions and leaves the connections open, so that neither
// side notices.
func (r *Relay) Blackhole() { r.set(swallowing, 0) }

// Mute swallows the server's bytes: requests are carried out and their answers lost.
func (r *Relay) Mute() { r.set(muting, 0) }

// Hold keeps all bytes in both directions until Release, like a partition that ends before TCP
// gives up.
func (r *Relay) Hold() { r.set(holding, 0) }

// Delay delays all bytes in both directions. Bytes that a client sent before it died or hung up
// arrive late, too. Release ends the delay for later bytes.
func (r *Relay) Delay(by time.Duration) { r.set(passing, by) }

// Release ends a Hold or a Delay.
func (r *Relay) Release() { r.set(passing, 0) }

// Heal lets everything pass again, on new connections: swallowed bytes left a gap in the old ones.
func (r *Relay) Heal() {
	r.mu.Lock()
	r.drop(false)
	r.mu.Unlock()
	r.set(passing, 0)
}

// Cut resets all connections and refuses new ones, until Restore.
func (r *Relay) Cut() {
	r.set(refusing, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.listener.Close()
	r.drop(true)
}

// Restore ends a Cut. It fails if another process has taken the port in the meantime.
func (r *Relay) Restore() error {
	l, err := r.network.Listen("tcp", r.address)
	if err != nil {
		return fmt.Errorf("the relay cannot come back: %w", err)
	}
	r.set(passing, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return l.Close()
	}
	r.listener = l
	r.ways.Go(func() { r.accept(l) })
	return nil
}

func (r *Relay) set(m mode, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode, r.late = m, late
	close(r.changed)
	r.changed = make(chan struct{})
}

// lets returns whether bytes in this direction pass, and how late. During a Hold it waits for the
// end.
func (r *Relay) lets(answers bool) (passes bool, late time.Duration) {
	for {
		r.mu.Lock()
		m, late, changed := r.mode, r.late, r.changed
		r.mu.Unlock()
		if m != holding {
			return m == passing || m == muting && !answers, late
		}
		<-changed
	}
}
