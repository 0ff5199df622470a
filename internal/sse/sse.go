// Package sse writes server-sent events, as the HTML standard defines them, to one client.
package sse

import (
	"net/http"
	"strings"
	"time"
)

// within bounds how long the write of one event may take: a client that reads nothing ends its
// stream.
const within = 10 * time.Second

// Writer writes events to one client. After the first error it writes nothing more.
type Writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

// NewWriter begins the answer.
func NewWriter(w http.ResponseWriter) *Writer {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies pass each event on at once
	return &Writer{w: w, control: http.NewResponseController(w)}
}

// Event sends an event. The id may be empty, and so may the name: browsers then call it "message".
// Data must be one line.
func (s *Writer) Event(id, name string, data []byte) {
	var text strings.Builder
	if id != "" {
		text.WriteString("id: " + id + "\n")
	}
	if name != "" {
		text.WriteString("event: " + name + "\n")
	}
	text.WriteString("data: ")
	text.Write(data)
	text.WriteString("\n\n")
	s.Raw(text.String())
}

// Raw sends lines as they are, such as a comment.
func (s *Writer) Raw(text string) {
	if s.err != nil {
		return
	}
	// without a deadline, a slow client would block
	_ = s.control.SetWriteDeadline(time.Now().Add(within))
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.control.Flush()
	}
	_ = s.control.SetWriteDeadline(time.Time{}) // in HTTP/2 a deadline also resets idle streams
}

// Err returns the first error.
func (s *Writer) Err() error { return s.err }
