package dashboard

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// keepAliveAfter is the time between two comments that keep a connection alive.
	keepAliveAfter = 15 * time.Second
	// messageWithin bounds how long the write of one message to a browser may take.
	messageWithin = 10 * time.Second
)

// serveStream sends changes as server-sent events, until the browser goes or is too slow, or Run's
// context ends.
func (d *Dashboard) serveStream(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // it would wait for messages, which have no head
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "a stream has no head")
		return
	}
	var of *key
	if k := requestedKey(r); k != (key{}) {
		of = &k
	}
	s, err := d.hub.open(of, r.Header.Get("Last-Event-ID"))
	if err != nil {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer d.hub.close(s)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // proxies pass each message on at once
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	out.write("retry: 2000\n\n")
	keep := time.NewTicker(keepAliveAfter)
	defer keep.Stop()
	for out.err == nil {
		if s.missed.Swap(false) {
			out.write("event: reset\ndata: {}\n\n")
		}
		select {
		case m := <-s.pending:
			out.message(d.hub, m)
		case <-keep.C:
			out.write(": still here\n\n")
		case <-r.Context().Done():
			return
		case <-d.ended:
			return
		}
	}
}

// eventWriter writes messages, and remembers the first error.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (o *eventWriter) message(h *hub, m message) {
	id := ""
	if m.id != 0 {
		id = "id: " + h.name(m.id) + "\n"
	}
	o.write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, m.event, m.data))
}

func (o *eventWriter) write(text string) {
	if o.err != nil {
		return
	}
	// without a deadline, a slow browser would block
	_ = o.control.SetWriteDeadline(time.Now().Add(messageWithin))
	if _, o.err = o.w.Write([]byte(text)); o.err == nil {
		o.err = o.control.Flush()
	}
	_ = o.control.SetWriteDeadline(time.Time{}) // in HTTP/2 a deadline also resets idle streams
}
