//go:build unix

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/metrics"
)

// measures are the metrics of this process, and the server for them. The zero value has neither.
type measures struct {
	set    *metrics.Set
	server *web.Server
	// absent represents the election in the metrics until the store is reached.
	absent   *metrics.Member
	election atomic.Pointer[tenure.Election]
}

// measure begins to serve metrics, if --metrics is given. Until the store is reached, they show
// that the process sees no leader and could not take over.
func (r *runFlags) measure(log *slog.Logger) (*measures, error) {
	m := &measures{}
	if r.scraped == nil {
		return m, nil
	}
	m.set = metrics.New()
	lease, margin := r.lease, r.config().Margin()
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

// elections returns the election, or none until the store is reached.
func (m *measures) elections() []*tenure.Election {
	if e := m.election.Load(); e != nil {
		return []*tenure.Election{e}
	}
	return nil
}

var errNotReached = errors.New("the store is not reached yet")

// healthz answers 200 if this process could take over, or else 503 with the reason. It does not
// depend on leading.
func (m *measures) healthz(w http.ResponseWriter, _ *http.Request) {
	err := errNotReached
	if e := m.election.Load(); e != nil {
		err = e.Status().Health()
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err) // fails if the client has gone
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

// joined replaces absent by the election, which is in the Set now.
func (m *measures) joined(e *tenure.Election) {
	m.election.Store(e)
	if m.set != nil {
		m.set.Remove(m.absent)
	}
}

func (m *measures) close() {
	if m.server != nil {
		_ = m.server.Close()
	}
}
