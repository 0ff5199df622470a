package dashboard_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/driver/memory"
)

// processes answers requests without a network. A host without a handler cannot be reached.
type processes struct {
	mu sync.Mutex
	of map[string]http.Handler
}

func (p *processes) set(host string, h http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[host] = h
}

func (p *processes) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	h := p.of[r.URL.Host]
	p.mu.Unlock()
	if h == nil {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestMembersReportThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, there := memory.New(), &processes{of: map[string]http.Handler{}}
		e, err := tenure.New(store, "billing", tenure.Config{ID: "a", Lease: lease, Priority: 7, Clock: clock.Standard{}})
		if err != nil {
			t.Fatal(err)
		}
		e.SetEligible(false)
		defer e.Observe()()
		all := func() []*tenure.Election { return []*tenure.Election{e} }
		there.set("node-1", dashboard.Report(all))
		there.set("node-2", http.NotFoundHandler())
		there.set("node-3", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`["` + strings.Repeat("a", 2<<20) + `"]`))
		}))
		s := show(t, dashboard.Source{
			Name: "store", Store: store, Elections: []string{"billing", "other"}, MembersClient: &http.Client{Transport: there},
			Members: []string{"http://x:s3cret@node-1/member", "http://node-2/member", "http://node-3/member", "http://node-4/member"},
		})
		time.Sleep(time.Minute)
		a := s.about("billing")
		if len(a.Members) != 1 || len(s.about("other").Members) != 0 {
			t.Fatalf("the members are %+v", a.Members)
		}
		m := a.Members[0]
		if m.ID != "a" || m.State != "idle" || m.Eligible || m.Priority != 7 || m.Problem != "" || m.From != "http://node-1/member" || m.NoReport != "" ||
			time.Since(m.At) > 10*time.Second || m.LastContact.IsZero() {
			t.Errorf("it reports %+v", m)
		}
		silent := s.overview("").Sources[0].Silent
		if len(silent) != 3 || silent[0] != "http://node-2/member: 404 Not Found" || !strings.HasPrefix(silent[1], "http://node-3/member: it is no report") ||
			silent[2] != "http://node-4/member: connection refused" {
			t.Errorf("silent are %q", silent)
		}

		at := m.At
		there.set("node-1", nil)
		time.Sleep(time.Minute)
		if a := s.about("billing"); len(a.Members) != 1 || a.Members[0].NoReport != "connection refused" || a.Members[0].At.Sub(at) > 10*time.Second {
			t.Errorf("after it has gone: %+v", a.Members)
		}
	})
}

// A member's news reach the page of its election.
func TestNewsOfMembersAreStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, there := memory.New(), &processes{of: map[string]http.Handler{}}
		e, err := tenure.New(store, "billing", tenure.Config{ID: "a", Lease: lease, Clock: clock.Standard{}})
		if err != nil {
			t.Fatal(err)
		}
		there.set("node-1", dashboard.Report(func() []*tenure.Election { return []*tenure.Election{e} }))
		s := show(t, dashboard.Source{
			Name: "store", Store: store, Elections: []string{"billing"},
			Members: []string{"http://node-1"}, MembersClient: &http.Client{Transport: there},
		})
		time.Sleep(time.Minute)
		stream, _ := s.stream("source=store&name=billing", "")
		time.Sleep(time.Minute)
		if text := stream.text(); strings.Contains(text, "event: change") {
			t.Errorf("without news: %s", text)
		}
		e.SetEligible(false)
		time.Sleep(time.Minute)
		if text := stream.text(); strings.Count(text, "event: change") != 1 {
			t.Errorf("with news: %s", text)
		}
	})
}
