package peer

import (
	"context"
	"net/http"
	"time"
)

// stream sends a follower the current write and then each later one, until there is none. It runs
// in the request's own goroutine. It never waits for a follower: one that reads slowly misses
// writes in between.
func (s *Store) stream(w http.ResponseWriter, r *http.Request, key string, challenge []byte) {
	seat, p := s.books.look(key)
	if p == nil {
		notLed(w)
		return
	}
	if !s.gate.enter() {
		http.Error(w, "closing", http.StatusServiceUnavailable)
		return
	}
	defer s.gate.leave()
	origin := originOf(r.RemoteAddr)
	if !s.books.enter(seat, origin, &s.cfg) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many followers of this election, in all or from this address", http.StatusServiceUnavailable)
		return
	}
	defer s.books.leave(seat, origin)
	w.Header().Set("Content-Type", eventStream)
	// makes some proxies pass events on at once
	w.Header().Set("X-Accel-Buffering", "no")
	o := &streamWriter{w: w, control: http.NewResponseController(w), timeout: s.cfg.Timeout}
	s.sendWrites(r.Context(), seat, o, func(p *leaderWrite, place uint64) string {
		if challenge == nil {
			return ""
		}
		return s.prove(key, p, challenge, place)
	})
}

// sendWrites sends until the follower leaves or a write to it fails, the term or its lease is over,
// or the store is closed. It still sends a write that came before Close, because a leader that
// shuts down releases and then closes.
func (s *Store) sendWrites(ctx context.Context, seat *keyState, o *streamWriter, prove func(*leaderWrite, uint64) string) {
	var last *leaderWrite
	for place, open := uint64(1), true; ; {
		p, changed := s.books.next(seat)
		if p == nil || p == last && !open {
			return
		}
		text := []byte(heartbeat)
		if p != last {
			text = event{version: p.version, value: p.value, proof: prove(p, place)}.bytes()
			place++
		}
		if o.write(text) != nil || p.record.Released {
			return
		}
		last = p
		open = s.waitForWrite(ctx, changed, p)
	}
}

// waitForWrite waits for the next write or until a heartbeat is due, but not longer than the lease
// is valid.
func (s *Store) waitForWrite(ctx context.Context, changed <-chan struct{}, p *leaderWrite) bool {
	beat := time.NewTimer(max(time.Millisecond, min(p.record.Lease/3, p.left(s.cfg.Clock.Now()))))
	defer beat.Stop()
	select {
	case <-changed:
	case <-beat.C:
	case <-ctx.Done():
		return false
	case <-s.gate.closing:
		return false
	}
	return true
}

// streamWriter writes to one follower.
type streamWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// write sends the text at once. A follower that does not take it within the timeout is cut off, if
// the server supports deadlines. The deadline is removed afterwards, since some servers end a
// stream when it passes, even if nothing is written.
func (o *streamWriter) write(text []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	if err := o.control.Flush(); err != nil {
		// also if the server cannot flush: the follower gets this write when the answer ends
		return err
	}
	_ = o.control.SetWriteDeadline(time.Time{})
	return nil
}
