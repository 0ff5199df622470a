package dashboard

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// quiet is the time after which a comment keeps the connection of a stream alive.
	quiet = 15 * time.Second
	// takeWithin bounds how long a browser may take for one message.
	takeWithin = 10 * time.Second
)

// serveStream sends what happens as server-sent events, until the browser goes or is too
// slow, or Run's context ends.
func (d *Dashboard) serveStream(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // it would wait for news that it cannot get
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "a stream has no head")
		return
	}
	var of *key
	if k := asked(r); k != (key{}) {
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
	keep := time.NewTicker(quiet)
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
	_ = o.control.SetWriteDeadline(time.Now().Add(takeWithin)) // without one, nothing is slow
	if _, o.err = o.w.Write([]byte(text)); o.err == nil {
		o.err = o.control.Flush()
	}
	_ = o.control.SetWriteDeadline(time.Time{}) // in HTTP/2 it resets quiet streams as well
}
