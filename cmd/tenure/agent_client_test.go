//go:build integration && unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// actor stands in for an agent. It has one campaign, and grants what its fields say.
type actor struct {
	flood    int                                          // bytes of events after the first one
	flooded  chan struct{}                                // closed when the client has read them
	beat     func(n int64, w http.ResponseWriter)         // answers the nth heartbeat
	finished func(w http.ResponseWriter, r *http.Request) // answers the report
	eligible func(eligible bool)                          // hears whether the client is fit to lead
	leaves   func()                                       // delays the answer when it ends
	beats    atomic.Int64
	begun    atomic.Int64 // campaigns
}

// serve returns the socket of the actor.
func (a *actor) serve(t *testing.T) string {
	t.Helper()
	a.flooded = make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/elections/billing/campaign", func(w http.ResponseWriter, r *http.Request) {
		a.begun.Add(1)
		fmt.Fprint(w, "event: campaign\ndata: {\"campaign\": \"c\", \"heartbeatMillis\": 600}\n\n")
		_ = http.NewResponseController(w).Flush()
		const event = "event: renewed\ndata: {\"token\": 1, \"remainingMillis\": 3600000}\n\n"
		if _, err := io.WriteString(w, strings.Repeat(event, a.flood/len(event))); err == nil && a.flood > 0 {
			close(a.flooded)
		}
		<-r.Context().Done()
	})
	const one = "/v1/elections/billing/campaigns/c"
	mux.HandleFunc("POST "+one+"/heartbeat", func(w http.ResponseWriter, _ *http.Request) { a.beat(a.beats.Add(1), w) })
	mux.HandleFunc("POST "+one+"/finished", func(w http.ResponseWriter, r *http.Request) { a.finished(w, r) })
	mux.HandleFunc("DELETE "+one, func(w http.ResponseWriter, _ *http.Request) {
		a.leaves()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("PUT "+one+"/eligible", func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Eligible bool }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.eligible(q.Eligible)
		w.WriteHeader(http.StatusNoContent)
	})
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	must.OK(t, err)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	t.Cleanup(func() { _ = s.Close() })
	go func() { _ = s.Serve(l) }()
	return socket
}

func grants(w http.ResponseWriter, millis int, finish bool) {
	fmt.Fprintf(w, `{"token": 1, "remainingMillis": %d, "finish": %v}`, millis, finish)
}

// starts starts a worker.
type starts func(t *testing.T, socket, journal, mode string) *program.Process

// eachClient runs a test with the client of each language.
func eachClient(t *testing.T, test func(t *testing.T, start starts)) {
	t.Helper()
	eachLanguage(t, func(t *testing.T, language string) {
		test(t, func(t *testing.T, socket, journal, mode string) *program.Process {
			return worker(t, language, socket, "c1", journal, mode)
		})
	})
	t.Run("java", func(t *testing.T) {
		t.Parallel()
		run := javaWorker(t)
		test(t, func(t *testing.T, socket, journal, mode string) *program.Process {
			return run.start(t, socket, "c1", journal, mode)
		})
	})
}

// TestAgentClientsRead: a client reads events while it leads: an agent gives up one that does not.
func TestAgentClientsRead(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, start starts) {
		a := &actor{flood: 4 << 20, beat: func(_ int64, w http.ResponseWriter) { grants(w, 3600_000, false) }}
		start(t, a.serve(t), filepath.Join(t.TempDir(), "journal"), "asks")
		select {
		case <-a.flooded:
		case <-wait.Context(t).Done():
			t.Error("it does not read")
		}
	})
}

// TestAgentClientsCountFromTheQuestion (A4): an answer that was under way for longer than the time
// that it grants allows no act.
func TestAgentClientsCountFromTheQuestion(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, start starts) {
		reported := make(chan struct{}, 1)
		a := &actor{
			beat: func(_ int64, w http.ResponseWriter) {
				time.Sleep(300 * time.Millisecond)
				grants(w, 250, false)
			},
			finished: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
				select {
				case reported <- struct{}{}:
				default:
				}
			},
		}
		journal := filepath.Join(t.TempDir(), "journal")
		start(t, a.serve(t), journal, "asks")
		select {
		case <-reported:
		case <-wait.Context(t).Done():
			t.Error("it does not report the end")
		}
		if judged(t, journal).Acts > 0 {
			t.Error("it acts")
		}
	})
}

// TestAgentClientsRepeatALostReport: if the report that the work has ended gets no answer, the
// client reports it again, even if it may act by an answer in between. The first report can still
// arrive, and release the lease.
func TestAgentClientsRepeatALostReport(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, start starts) {
		var reports atomic.Int64
		var cut atomic.Pointer[error]
		a := &actor{
			beat: func(n int64, w http.ResponseWriter) { grants(w, 3600_000, n > 2 && reports.Load() == 0) },
			finished: func(w http.ResponseWriter, _ *http.Request) {
				if reports.Add(1) > 1 {
					w.WriteHeader(http.StatusNoContent)
					return
				}
				c, _, err := http.NewResponseController(w).Hijack()
				if err = errors.Join(err, c.Close()); err != nil {
					cut.Store(&err)
				}
			},
		}
		p := start(t, a.serve(t), filepath.Join(t.TempDir(), "journal"), "asks")
		leads := func() int { return strings.Count(p.Out.String(), "leads") }
		wait.Until(t, "it reports the end again", func() bool { return reports.Load() > 1 || leads() > 1 })
		if leads() != 1 {
			t.Errorf("it says\n%s", p.Out.String())
		}
		if err := cut.Load(); err != nil {
			t.Error(*err)
		}
	})
}

// TestAgentClientsStayUnfit: a client that is not fit to lead says so again in its next campaign,
// before it asks whether it leads.
func TestAgentClientsStayUnfit(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, start starts) {
		var refusals atomic.Int64
		var asksFirst atomic.Bool
		a := &actor{finished: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}}
		a.beat = func(_ int64, w http.ResponseWriter) {
			begun, refused := a.begun.Load(), refusals.Load()
			if begun == 1 && refused > 0 {
				w.WriteHeader(http.StatusGone)
				return
			}
			if refused < begun && begun > 1 {
				asksFirst.Store(true)
			}
			grants(w, 3600_000, false)
		}
		a.eligible = func(eligible bool) {
			if !eligible {
				refusals.Add(1)
			}
		}
		start(t, a.serve(t), filepath.Join(t.TempDir(), "journal"), "declines")
		wait.Until(t, "it says again that it is not fit", func() bool {
			return refusals.Load() > 1 || asksFirst.Load()
		})
		if asksFirst.Load() {
			t.Error("it asks first whether it leads")
		}
	})
}

// TestAgentClientsLeave: while a client reports that its work has ended, no other part of the
// program may act: the agent may have released the lease.
func TestAgentClientsLeave(t *testing.T) {
	t.Parallel()
	for language, other := range languages {
		if !other { // there is no other part
			continue
		}
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			a := &actor{
				beat:     func(_ int64, w http.ResponseWriter) { grants(w, 3600_000, false) },
				leaves:   func() { <-asked },
				finished: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
			}
			p := worker(t, language, a.serve(t), "c1", filepath.Join(t.TempDir(), "journal"), "quits")
			p.Says("may act: ")
			close(asked)
			if said := strings.ToLower(p.Out.String()); !strings.Contains(said, "may act: false") {
				t.Errorf("it says\n%s", said)
			}
		})
	}
}
