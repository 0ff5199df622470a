package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/members"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/test/able"
)

// processes answers requests without a network, each with the same reason phrase. A host without a
// handler cannot be reached.
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
	answer := w.Result()
	answer.Status = fmt.Sprint(answer.StatusCode, " all is well")
	return answer, nil
}

// shows runs a Dashboard that asks processes for reports of their members.
func (p *processes) shows(s *scene, store driver.Store, names, urls []string) {
	s.show(store, func(of *Source) {
		of.Elections, of.Members, of.MembersClient = names, urls, &http.Client{Transport: p}
	})
}

// reportOf serves the report of one election.
func reportOf(e *tenure.Election) http.Handler {
	return Report(func() []*tenure.Election { return []*tenure.Election{e} })
}

var (
	justBilling = []string{"billing"}
	node1       = []string{"http://node-1"}
)

func TestMembers(t *testing.T) {
	scenes{
		"they report themselves": func(s *scene) {
			there := &processes{of: map[string]http.Handler{}}
			e, err := tenure.New(s.store, "billing", tenure.Config{ID: "a", Lease: lease, Priority: 7})
			if err != nil {
				s.Fatal(err)
			}
			e.SetEligible(false)
			go func() {
				for range e.Watch(s.Context()) {
				}
			}()
			there.set("node-1", reportOf(e))
			there.set("node-2", http.NotFoundHandler())
			there.set("node-3", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`["` + strings.Repeat("a", 2<<20) + `"]`))
			}))
			there.shows(s, s.store, []string{"billing", "other"}, []string{
				"http://x:s3cret@node-1/member?token=s3cret#s3cret", "http://node-2/member?token=s3cret", "http://node-3/member", "http://node-4/member",
			})
			time.Sleep(time.Minute)
			a := s.about("billing")
			if len(a.Members) != 1 || len(s.about("other").Members) != 0 {
				s.Fatalf("the members are %+v", a.Members)
			}
			m := a.Members[0]
			if m.ID != "a" || m.State != "idle" || m.Eligible || m.Priority != 7 || m.Problem != "" || m.From != "http://node-1/member" || m.Since != "" ||
				time.Since(m.At) > 10*time.Second || m.LastContact.IsZero() {
				s.Errorf("it reports %+v", m)
			}
			silent := s.overview("").Sources[0].Silent
			if len(silent) != 3 || silent[0] != "http://node-2/member: 404 Not Found" || !strings.HasPrefix(silent[1], "http://node-3/member: it is no report") ||
				silent[2] != "http://node-4/member: connection refused" {
				s.Errorf("silent are %q", silent)
			}

			at := m.At
			there.set("node-1", nil)
			time.Sleep(time.Minute)
			if a := s.about("billing"); len(a.Members) != 1 || a.Members[0].Since != "connection refused" || a.Members[0].At.Sub(at) > 10*time.Second {
				s.Errorf("after it has gone: %+v", a.Members)
			}
		},
		// A member's report reaches the page of its election.
		"reports are streamed": func(s *scene) {
			there := &processes{of: map[string]http.Handler{}}
			e, err := tenure.New(s.store, "billing", tenure.Config{ID: "a", Lease: lease})
			if err != nil {
				s.Fatal(err)
			}
			there.set("node-1", reportOf(e))
			there.shows(s, s.store, justBilling, node1)
			time.Sleep(time.Minute)
			stream, _ := s.stream("source=store&name=billing", "")
			time.Sleep(time.Minute)
			if text := stream.text(); strings.Contains(text, "event: change") {
				s.Errorf("without news: %s", text)
			}
			e.SetEligible(false)
			time.Sleep(time.Minute)
			if text := stream.text(); strings.Count(text, "event: change") != 1 {
				s.Errorf("with news: %s", text)
			}
		},
		// A report in which everything is new is one message.
		"many changes are one message": func(s *scene) {
			names := shards(1000)
			var asked atomic.Int64
			there := &processes{of: map[string]http.Handler{"node-1": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				all := make([]admin.Member, len(names))
				for i, name := range names {
					all[i] = admin.Member{Election: name, ID: fmt.Sprint(asked.Load())}
				}
				asked.Add(1)
				_ = json.NewEncoder(w).Encode(all)
			})}}
			there.shows(s, s.store, names, node1)
			time.Sleep(time.Minute + time.Second) // between two of the reports every 10 s
			stream, _ := s.stream("", "")
			before := asked.Load()
			time.Sleep(time.Minute)
			text := stream.text()
			if n := int(asked.Load() - before); n == 0 || strings.Count(text, "event: source") != n || strings.Contains(text, "event: change") || strings.Contains(text, "event: reset") {
				s.Errorf("%d reports were streamed as\n%.1000s", n, text)
			}
		},
		// A member cannot redirect the dashboard to another address.
		"redirects are not followed": func(s *scene) {
			var asked atomic.Bool
			usual := http.DefaultTransport
			defer func() { http.DefaultTransport = usual }()
			http.DefaultTransport = &processes{of: map[string]http.Handler{
				"node-1":    http.RedirectHandler("http://elsewhere/", http.StatusFound),
				"elsewhere": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }),
			}}
			s.show(s.store, func(of *Source) { of.Members = []string{"http://node-1/member"} })
			time.Sleep(time.Minute + time.Second) // between two requests
			if asked.Load() {
				s.Error("the other address was asked")
			}
			if silent := s.overview("").Sources[0].Silent; len(silent) != 1 || silent[0] != "http://node-1/member: 302 Found" {
				s.Errorf("silent are %q", silent)
			}
		},
		// Where the store can ask, the page shows the candidates that answer, and asks only while
		// it is open.
		"candidates answer the page": func(s *scene) {
			var asked atomic.Int64
			s.fails(func(_ context.Context, op, _ string) error {
				if op == "ask" {
					asked.Add(1)
				}
				return nil
			})
			e, err := tenure.New(s.way, "billing", tenure.Config{ID: "a", Lease: lease, Priority: 7})
			if err != nil {
				s.Fatal(err)
			}
			there := &processes{of: map[string]http.Handler{"node-1": reportOf(e)}}
			there.shows(s, s.way, []string{"billing", "other"}, node1)
			ctx, stop := context.WithCancel(s.Context())
			ended := make(chan error)
			go func() {
				ended <- e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error { <-ctx.Done(); return nil })
			}()
			time.Sleep(time.Hour)
			if n := asked.Load(); n != 0 {
				s.Errorf("without a browser, the candidates were asked %d times", n)
			}
			s.about("billing")
			synctest.Wait()
			a := s.about("billing")
			if len(a.Members) != 1 || a.Members[0].ID != "a" || a.Members[0].Known != "answered" || a.Members[0].Priority != 7 || !a.Presence.Asked || !a.Presence.Reports {
				s.Errorf("the candidates are %+v, known by %+v", a.Members, a.Presence)
			}
			stream, _ := s.stream("source=store&name=billing", "")
			before := asked.Load()
			time.Sleep(time.Minute + time.Second)
			if n := asked.Load() - before; n != 6 {
				s.Errorf("within a minute of an open page, they were asked %d times", n)
			}
			if text := stream.text(); strings.Contains(text, "event: change") {
				s.Errorf("without news: %s", text)
			}
			stop()
			if err := <-ended; err != nil {
				s.Error(err)
			}
			time.Sleep(time.Minute)
			if a := s.about("billing"); len(a.Members) != 1 || a.Members[0].Known != "reported" || a.Members[0].State != "idle" {
				s.Errorf("after it has left: %+v", a.Members)
			}
		},
	}.play(t)
}

// A process may report anything. That costs a bounded amount of memory, and its texts are cut.
func TestHostileMemberReportsAreBounded(t *testing.T) {
	many := func(n int, member string) string { return "[" + strings.Repeat(member+",", n-1) + member + "]" }
	all := scenes{}
	for _, c := range []struct {
		why, report string
		members     int
		silent      string
	}{
		{"in order", `[{"election":"billing","id":"a"}]`, 1, ""},
		{"an election that is not shown", `[{"election":"other","id":"a"},{"election":"billing","id":"b"}]`, 1, ""},
		{"a long election", `[{"election":"` + strings.Repeat("<", 1<<19) + `"}]`, 0, ""},
		{"a long id", `[{"election":"billing","id":"` + strings.Repeat("a", 257) + `"}]`, 0, "it is no report: an ID or a state"},
		{"a long state", `[{"election":"billing","state":"` + strings.Repeat("a", 257) + `"}]`, 0, "it is no report: an ID or a state"},
		{"a long problem", `[{"election":"billing","problem":"` + strings.Repeat("a", 1<<19) + `"}]`, 1, ""},
		{"a long time", `[{"election":"billing","last_contact":"` + strings.Repeat("1", 1<<19) + `"}]`, 0, "it is no report: "},
		{"too many", many(10_001, `{"election":"billing"}`), 0, "it reports more than 10000 members"},
		{"many of elections that are not shown", many(20_000, `{"id":"a"}`), 0, ""},
		{"no end", `[{"election":"billing","id":"a"}`, 0, "it is no report: "},
		{"no array", `{}`, 0, "it is no report: "},
	} {
		all[c.why] = func(s *scene) {
			there := &processes{of: map[string]http.Handler{}}
			there.shows(s, s.store, justBilling, node1)
			stream, _ := s.stream("", "")
			time.Sleep(time.Second) // the election is shown
			there.set("node-1", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(c.report))
			}))
			time.Sleep(time.Minute)
			if text := stream.text(); len(text) > 1<<10 {
				s.Errorf("the stream has %d bytes", len(text))
			}
			members, silent := s.about("billing").Members, strings.Join(s.overview("").Sources[0].Silent, "")
			if len(members) != c.members || c.silent == "" && silent != "" || !strings.HasPrefix(strings.TrimPrefix(silent, "http://node-1: "), c.silent) || len(silent) > 1100 {
				s.Errorf("%d members, silent is %.2000q", len(members), silent)
			}
			if len(members) > 0 && len(members[0].Problem) > 1<<10 {
				s.Errorf("its problem has %d bytes", len(members[0].Problem))
			}
		}
	}
	all.play(t)
}

// A name stands for the processes at all of its addresses.
func TestMembersAreFoundByName(t *testing.T) {
	e, err := tenure.New(memory.New(), "billing", tenure.Config{ID: "a", Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	there := &processes{of: map[string]http.Handler{"127.0.0.1:9464": reportOf(e)}}
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		there.shows(s, s.store, justBilling, []string{"dns+http://127.0.0.1:9464/member"})
		time.Sleep(time.Minute)
		if all := s.about("billing").Members; len(all) != 1 || all[0].ID != "a" || all[0].Known != "reported" || all[0].From != "http://127.0.0.1:9464/member" {
			t.Errorf("the members are %+v", all)
		}
	})
}

// A process whose address the name no longer has is forgotten. If the lookup fails, all are kept,
// and the failure is reported.
func TestProcessesThatWentAreForgotten(t *testing.T) {
	r := newReports(&Source{Name: "store"}, newHub(), func(string) bool { return true })
	const name = "dns+http://workers:9464/member"
	a, b := members.Address{URL: "http://10.0.0.1:9464/member"}, members.Address{URL: "http://10.0.0.2:9464/member"}
	ids := func() (all []string) {
		for _, m := range r.members("billing") {
			all = append(all, m.ID)
		}
		return all
	}
	r.keep(name, []members.Address{a, b}, false)
	r.take(a.URL, []admin.Member{{Election: "billing", ID: "a"}}, nil)
	r.take(b.URL, []admin.Member{{Election: "billing", ID: "b"}}, nil)
	r.keep(name, nil, true)
	r.take(name, nil, errors.New("no such host"))
	if got, silent := ids(), r.silent(); !slices.Equal(got, []string{"a", "b"}) || !slices.Equal(silent, []string{name + ": no such host"}) {
		t.Errorf("while the name cannot be looked up: %q, silent are %q", got, silent)
	}
	r.keep(name, []members.Address{b}, false)
	if got, silent := ids(), r.silent(); !slices.Equal(got, []string{"b"}) || len(silent) != 0 {
		t.Errorf("after a has gone: %q, silent are %q", got, silent)
	}
}

// A dashboard that shares its store with candidates, and one that acts, keep to the limits of the
// store. No push passes by the check of an action.
func TestStoresOfTheDashboardKeepAbilities(t *testing.T) {
	anyLease := records.Tap(able.Store{}, func(string, driver.Entry, bool) {})
	acting := able.Answers(t.Context(), anyLease)
	for _, hidden := range []string{"Watcher", "Peers"} {
		delete(acting, hidden)
	}
	if got := able.Answers(t.Context(), &checkedStore{Store: able.Store{}}); !maps.Equal(got, acting) {
		t.Errorf("acting: %v, want %v", got, acting)
	}
	all := able.Answers(t.Context(), able.Store{})
	if got := able.Answers(t.Context(), limitReads(able.Store{})); !maps.Equal(got, all) {
		t.Errorf("reading: %v, want %v", got, all)
	}
}
