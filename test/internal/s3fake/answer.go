package s3fake

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// hold reads the whole request before it waits, so that the server carries it out even if the
// sender gives up.
func hold(w http.ResponseWriter, d time.Duration, inner http.Handler, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	time.Sleep(d)
	inner.ServeHTTP(w, r)
}

// late delays an answer.
type late struct {
	http.ResponseWriter
	by time.Duration
}

func (l *late) WriteHeader(status int) {
	l.wait()
	l.ResponseWriter.WriteHeader(status)
}

func (l *late) Write(b []byte) (int, error) {
	l.wait()
	return l.ResponseWriter.Write(b)
}

func (l *late) wait() {
	time.Sleep(l.by)
	l.by = 0
}

// missing replaces 412 by 404 in an answer.
type missing struct {
	http.ResponseWriter
	replaced bool
}

func (m *missing) WriteHeader(status int) {
	if status == http.StatusPreconditionFailed {
		m.replaced = true
		m.Header().Del("Content-Length")
		refuse(m.ResponseWriter, http.StatusNotFound, "NoSuchKey")
		return
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *missing) Write(b []byte) (int, error) {
	if m.replaced {
		return len(b), nil
	}
	return m.ResponseWriter.Write(b)
}
