package peer

import (
	"context"
	"net/http"
	"time"
)

// stream shows a follower the present state and then each later one, until there is none to show.
// It runs in the request's own goroutine, and a follower that reads slowly misses states in
// between: it is never waited for.
func (s *Store) stream(w http.ResponseWriter, r *http.Request, key string, challenge []byte) {
	seat, p := s.books.look(key)
	if p == nil {
		notLed(w)
		return
	}
	if !s.doors.enter() {
		http.Error(w, "closing", http.StatusServiceUnavailable)
		return
	}
	defer s.doors.leave()
	origin := originOf(r.RemoteAddr)
	if !s.books.enter(seat, origin, &s.cfg) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many followers of this election, in all or from this address", http.StatusServiceUnavailable)
		return
	}
	defer s.books.leave(seat, origin)
	w.Header().Set("Content-Type", eventStream)
	// a proxy that understands this passes events on at once
	w.Header().Set("X-Accel-Buffering", "no")
	o := &streamWriter{w: w, control: http.NewResponseController(w), timeout: s.cfg.Timeout}
	s.show(r.Context(), seat, o, func(p *page, place uint64) string {
		if challenge == nil {
			return ""
		}
		return s.prove(key, p, challenge, place)
	})
}

// show writes until the follower leaves or cannot be written to, the term or its lease is over, or
// the store is closed. A page that came before that is shown still: a leader that shuts down
// releases and then closes.
func (s *Store) show(ctx context.Context, seat *seat, o *streamWriter, prove func(*page, uint64) string) {
	var last *page
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
		open = s.pause(ctx, changed, p)
	}
}

// pause waits for the next page or until a heartbeat is due, and no longer than the lease is valid.
func (s *Store) pause(ctx context.Context, changed <-chan struct{}, p *page) bool {
	beat := time.NewTimer(max(time.Millisecond, min(p.record.Lease/3, p.left(s.cfg.Clock.Now()))))
	defer beat.Stop()
	select {
	case <-changed:
	case <-beat.C:
	case <-ctx.Done():
		return false
	case <-s.doors.closing:
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

// write sends at once. A follower that does not take it within the timeout is cut off, where the
// server can be told so. The deadline is lifted afterwards, since some servers end a stream when it
// passes, whether or not anything is written.
func (o *streamWriter) write(text []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	if err := o.control.Flush(); err != nil {
		// also where the server cannot flush: the follower gets this state when the answer ends
		return err
	}
	_ = o.control.SetWriteDeadline(time.Time{})
	return nil
}
