//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/metrics"
	"github.com/tenure-go/tenure/timing"
)

// storeNamer adds the store to warnings and errors: a store that does not answer is one of many
// where the lines of many processes come together.
type storeNamer struct {
	slog.Handler
	store string
}

// Handle passes on a record.
func (n storeNamer) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		r = r.Clone()
		r.AddAttrs(slog.String("store", n.store))
	}
	return n.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that adds the store, too.
func (n storeNamer) WithAttrs(all []slog.Attr) slog.Handler {
	return storeNamer{n.Handler.WithAttrs(all), n.store}
}

// WithGroup returns a handler that adds the store, too.
func (n storeNamer) WithGroup(name string) slog.Handler {
	return storeNamer{n.Handler.WithGroup(name), n.store}
}

// patientLog passes lines on to a writer that may hang, such as a pipe that no process reads. It
// drops lines and does not wait: a log must not cost a lease, or delay a signal.
type patientLog struct {
	out    io.Writer
	lines  chan []byte
	ending chan struct{}
	ended  chan struct{}
}

const (
	logLines = 1024 // the number of lines that may wait
	logFlush = time.Second
)

func newPatientLog(out io.Writer) *patientLog {
	l := &patientLog{out: out, lines: make(chan []byte, logLines), ending: make(chan struct{}), ended: make(chan struct{})}
	go l.pass()
	return l
}

// Write takes one line.
func (l *patientLog) Write(line []byte) (int, error) {
	select {
	case l.lines <- bytes.Clone(line):
	default:
	}
	return len(line), nil
}

func (l *patientLog) pass() {
	defer close(l.ended)
	for {
		select {
		case line := <-l.lines:
			_, _ = l.out.Write(line)
		case <-l.ending:
			l.rest()
			return
		}
	}
}

func (l *patientLog) rest() {
	for {
		select {
		case line := <-l.lines:
			_, _ = l.out.Write(line)
		default:
			return
		}
	}
}

// flush waits until the lines are written, for logFlush at most. Later lines are lost.
func (l *patientLog) flush() {
	close(l.ending)
	select {
	case <-l.ended:
	case <-time.After(logFlush):
	}
}

// measures are the metrics of this process, and the server for them. The zero value has neither.
type measures struct {
	set    *metrics.Set
	server *web.Server
	// absent represents the election in the metrics until the store is reached.
	absent *metrics.Member
	joint  atomic.Pointer[[]*tenure.Election]
}

// measure begins to serve metrics, if --metrics is given. Until the store is reached, they show
// that the process sees no leader and could not take over.
func (r *candidateFlags) measure(log *slog.Logger) (*measures, error) {
	m := &measures{}
	if r.scraped == nil {
		return m, nil
	}
	m.set = metrics.New()
	lease, margin := r.lease, timing.Margin(r.config())
	m.absent = m.set.Add(r.election, func() (metrics.State, bool) {
		return metrics.State{Role: metrics.Leaderless, Lease: lease, Margin: margin, Unhealthy: true}, true
	})
	pages := http.NewServeMux()
	pages.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", metrics.TextType)
		_ = m.set.WriteText(w) // fails if the client has gone or is too slow
	})
	pages.HandleFunc("GET /healthz", m.healthz)
	pages.Handle("GET /member", dashboard.Report(m.elections))
	var err error
	if m.server, err = r.scraped.Open(pages, log); err != nil {
		return nil, err
	}
	log.Info("metrics are served", "url", m.server.URL+"/metrics")
	return m, nil
}

// elections returns the elections, or none until the store is reached.
func (m *measures) elections() []*tenure.Election {
	if all := m.joint.Load(); all != nil {
		return *all
	}
	return nil
}

var errNotReached = errors.New("the store is not reached yet")

// healthz answers 200 if this process could take over, or else 503 with the reason. It does not
// depend on leading.
func (m *measures) healthz(w http.ResponseWriter, _ *http.Request) {
	all := m.elections()
	var err error
	if len(all) == 0 {
		err = errNotReached
	}
	for _, e := range all {
		if err = e.Status().Health(); err != nil {
			break
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err) // fails if the client has gone
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

// joined replaces absent by the elections, which are in the Set now.
func (m *measures) joined(all []*tenure.Election) {
	m.joint.Store(&all)
	if m.set != nil {
		m.set.Remove(m.absent)
	}
}

func (m *measures) close() error {
	if m.server == nil {
		return nil
	}
	return m.server.Close()
}
