package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// scenes are tests of a Dashboard, each with the property that it shows.
type scenes map[string]func(*scene)

// play plays each scene in a synctest bubble.
func (all scenes) play(t *testing.T) {
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(newScene(t)) })
		})
	}
}

// scene is a store, a way to it that the test can cut off, and the Dashboard that was run last.
type scene struct {
	*testing.T
	*Dashboard
	store *memory.Store
	way   *fake
}

func newScene(t *testing.T) *scene {
	store := memory.New()
	return &scene{T: t, store: store, way: &fake{Store: store, fail: cutOff}}
}

// run runs a Dashboard until stop, or until the test ends.
func (s *scene) run(cfg Config) (stop func()) {
	s.Helper()
	d, err := New(cfg)
	if err != nil {
		s.Fatal(err)
	}
	s.Dashboard = d
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	stop = func() { cancel(); <-done }
	s.Cleanup(stop)
	return stop
}

// show runs a Dashboard that shows the election "billing" of a store.
func (s *scene) show(store driver.Store, change ...func(*Source)) {
	s.Helper()
	of := Source{Name: "store", Store: store, Elections: []string{"billing"}}
	for _, change := range change {
		change(&of)
	}
	s.run(Config{Sources: []Source{of}, Version: "v1"})
}

// elections are those that are shown, in place of "billing"; without a name those that are listed.
func elections(names ...string) func(*Source) {
	return func(of *Source) { of.Elections = names }
}

// every is the time between two reads.
func every(interval time.Duration) func(*Source) {
	return func(of *Source) { of.Interval = interval }
}

// shards returns the names of n elections, in order.
func shards(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("shard-%05d", i)
	}
	return names
}

// get requests a page and decodes the answer.
func (s *scene) get(path string, into any) {
	s.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		s.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		s.Fatalf("%s: %v in %s", path, err, w.Body)
	}
}

func (s *scene) overview(query string) (o overview) {
	s.Helper()
	s.get("/api/overview?q="+query, &o)
	return o
}

func (s *scene) about(name string) (a detail) {
	s.Helper()
	s.get("/api/election?source=store&name="+url.QueryEscape(name), &a)
	return a
}

// lead campaigns until stopped. The stop releases the lease unless the store is cut off first.
func (s *scene) lead(store driver.Store, name, id string, changes ...func(*tenure.Config)) (stop func()) {
	s.Helper()
	cfg := tenure.Config{ID: id, Lease: lease}
	for _, change := range changes {
		change(&cfg)
	}
	e, err := tenure.New(store, name, cfg)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error { <-ctx.Done(); return nil })
	}()
	stop = func() { cancel(); <-done }
	s.Cleanup(stop)
	return stop
}

// fake is a way to a store. While it is off, each call and push passes by fail, and is lost if that
// returns an error. An op is read, write, watch, push, list or ask.
type fake struct {
	*memory.Store
	off    atomic.Bool
	fail   func(ctx context.Context, op, key string) error
	polled bool // it pushes nothing

	mu    sync.Mutex
	names []string // Keys lists these if there are any
	sees  []func(driver.Entry)
}

// fails turns the way off.
func (s *scene) fails(fail func(ctx context.Context, op, key string) error) {
	s.way.fail = fail
	s.way.off.Store(true)
}

// only is a fail that affects one operation.
func only(which string, err error) func(ctx context.Context, op, key string) error {
	return func(_ context.Context, op, _ string) error {
		if op == which {
			return err
		}
		return nil
	}
}

// cutOff is a fail.
func cutOff(context.Context, string, string) error { return errors.New("cut off") }

func (f *fake) check(ctx context.Context, op, key string) error {
	if f.off.Load() {
		return f.fail(ctx, op, key)
	}
	return nil
}

func (f *fake) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(f.Store)
	a.Inspector, a.Presence = f, f
	if a.Watcher = f; f.polled {
		a.Watcher = nil
	}
	return a
}

func (f *fake) Read(ctx context.Context, key string) (driver.Entry, error) {
	if err := f.check(ctx, "read", key); err != nil {
		return driver.Entry{}, err
	}
	return f.Store.Read(ctx, key)
}

func (f *fake) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := f.check(ctx, "write", key); err != nil {
		return "", err
	}
	return f.Store.CompareAndSwap(ctx, key, prev, value)
}

func (f *fake) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := f.check(ctx, "watch", key); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.sees = append(f.sees, see)
	f.mu.Unlock()
	return f.Store.Watch(ctx, key, func(e driver.Entry) {
		if f.check(context.Background(), "push", key) == nil {
			see(e)
		}
	})
}

// pushes pushes an entry to all watches.
func (f *fake) pushes(e driver.Entry) {
	f.mu.Lock()
	all := slices.Clone(f.sees)
	f.mu.Unlock()
	for _, see := range all {
		see(e)
	}
}

func (f *fake) Keys(ctx context.Context) ([]string, error) {
	f.mu.Lock()
	names := f.names
	f.mu.Unlock()
	return names, f.check(ctx, "list", "")
}

func (f *fake) lists(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names = names
}

func (f *fake) Candidates(ctx context.Context, key string) ([][]byte, error) {
	if err := f.check(ctx, "ask", key); err != nil {
		return nil, err
	}
	return f.Store.Candidates(ctx, key)
}

func TestDashboard(t *testing.T) {
	scenes{
		// A leader is cut off, and another one stops.
		"the history of an election": func(s *scene) {
			s.show(s.store)
			time.Sleep(time.Second)
			if a := s.about("billing"); a.Row.Health != "vacant" || a.Record.Kind != "absent" || a.Left != nil || len(a.Terms) != 0 {
				s.Errorf("before the first: %+v", a)
			}
			s.lead(s.way, "billing", "a")
			time.Sleep(time.Minute)
			a := s.about("billing")
			if a.Row.Health != "ok" || a.Row.Leader != "a" || !a.Pushed || len(a.Terms) != 1 || a.Terms[0].To != nil || a.Record.Kind != "held" {
				s.Errorf("led: %+v", a)
			}
			if n := len(a.Renewals); n < 8 || a.Renewals[n-1].Left < 0.6 || a.Renewals[n-1].Left > 0.7 {
				s.Errorf("its renewals are %v", a.Renewals)
			}
			if a.Left == nil || a.Left.Most < 9000 || a.Left.Most > 15000 || a.Left.Least != a.Left.Most-1000 {
				s.Errorf("time left: %+v", a.Left)
			}
			stopB := s.lead(s.store, "billing", "b")
			time.Sleep(2*lease + time.Second) // b has seen a renew, and no renewal is in flight
			s.way.off.Store(true)
			time.Sleep(2 * lease)
			a = s.about("billing")
			if a.Row.Leader != "b" || len(a.Terms) != 2 || a.Row.Changes != 1 {
				s.Fatalf("after the silence: %+v", a)
			}
			if first := a.Terms[0]; first.Ended != "silence" || *first.Least != 15000 || *first.Took < 15000 || *first.Took > 16000 || first.To.After(a.Terms[1].From) {
				s.Errorf("a's term: %+v, took %v of at least %v; then %v", first, *first.Took, *first.Least, a.Terms[1].From)
			}
			s.lead(s.store, "billing", "c")
			time.Sleep(time.Second)
			stopB()
			time.Sleep(time.Second)
			a = s.about("billing")
			if a.Row.Leader != "c" || len(a.Terms) != 3 || a.Terms[1].Ended != "released" || *a.Terms[1].Least != 0 || *a.Terms[1].Took > 10 {
				s.Errorf("after the release: %+v", a.Terms)
			}
			var events []string
			for _, e := range a.Events {
				events = append(events, e.What+" "+e.Leader)
			}
			// The short vacancy of the hand-over is left out. That after the silence may be as
			// short.
			if got := strings.Replace(strings.Join(events, ", "), "b, vacant , elected a", "b, elected a", 1); got != "elected c, released b, elected b, elected a, vacant " {
				s.Errorf("events: %s", got)
			}
		},
		// The leader was there before the dashboard, so it leads for at least the time that was
		// seen. Only the dashboard loses the store. When it can read again, it finds the same
		// leader.
		"an outage of the dashboard alone": func(s *scene) {
			s.way.polled = true
			s.lead(s.store, "billing", "a")
			time.Sleep(time.Hour)
			s.show(s.way, every(time.Second))
			time.Sleep(time.Minute)
			before := s.about("billing")
			if before.Row.Health != "ok" || !before.Row.AtLeast {
				s.Errorf("before the outage: %+v", before.Row)
			}
			s.way.off.Store(true)
			for _, later := range []time.Duration{2 * time.Second, 2 * lease} { // a poll, a lease
				time.Sleep(later)
				of, row := s.overview("").Sources[0], s.about("billing").Row
				if of.Away == nil || row.Health != "unknown" || row.Leader != "a" || row.LastKnown == nil {
					s.Errorf("during the outage: %+v, %+v", of, row)
				}
			}
			s.way.off.Store(false)
			time.Sleep(checkEvery + time.Millisecond)
			if of := s.overview("").Sources[0]; !of.OK {
				s.Errorf("when it is back: %+v", of)
			}
			time.Sleep(2 * lease)
			if a := s.about("billing"); a.Row.Health != "ok" || a.Row.Leader != "a" || len(a.Terms) != 1 || a.Terms[0].To != nil || a.Row.Term != before.Row.Term {
				s.Errorf("after the outage: %+v", a)
			}
		},
		"the worst elections come first": func(s *scene) {
			names := []string{"calm", "alarm", "empty", "flapping"}
			s.show(s.store, elections(names...))
			s.lead(s.store, "calm", "a<script>")
			time.Sleep(time.Minute)
			for i := range 7 {
				stop := s.lead(s.store, "flapping", fmt.Sprint("f", i))
				time.Sleep(2 * lease)
				stop()
			}
			s.lead(s.store, "flapping", "last")
			s.store.Put("alarm", []byte("\x1b[31mnot a record\u202e"))
			time.Sleep(time.Minute)
			o := s.overview("")
			var got []string
			for _, e := range o.Elections {
				got = append(got, e.Name+" "+string(e.Health))
			}
			if text := strings.Join(got, ", "); text != "alarm vacant, empty vacant, flapping flapping, calm ok" {
				s.Errorf("the order is %s", text)
			}
			if o.Counts["all"] != 4 || o.Counts["vacant"] != 2 || o.Counts["flapping"] != 1 || o.Counts["ok"] != 1 || o.Counts["tight"] != 0 {
				s.Errorf("counts: %v", o.Counts)
			}
			if o = s.overview("&health=flapping"); o.Matching != 1 || o.Elections[0].Name != "flapping" || o.Counts["all"] != 4 {
				s.Errorf("the flapping ones: %+v", o)
			}
			if o = s.overview("SCRIPT"); o.Matching != 1 || o.Elections[0].Name != "calm" || o.Counts["all"] != 4 {
				s.Errorf("found: %+v", o)
			}
			if a := s.about("alarm"); a.Record.Kind != "foreign" || a.Record.Text != "\x1b[31mnot a record\u202e" {
				s.Errorf("a foreign record: %+v", a.Record)
			}
		},
		"listed elections": func(s *scene) {
			s.fails(only("list", fmt.Errorf("list: %w", driver.ErrDenied)))
			s.way.polled = true
			s.show(s.way, elections(), every(15*time.Second), func(of *Source) { of.Price = 0.0004 })
			time.Sleep(time.Second)
			if o := s.overview(""); o.Sources[0].OK || !strings.Contains(o.Sources[0].Problem, "right to list") {
				s.Errorf("without the right: %+v", o.Sources)
			}
			s.way.off.Store(false)
			s.way.lists(shards(1000)...)
			time.Sleep(10 * time.Second)
			if of := s.overview("").Sources[0]; of.Elections != 1000 || time.Since(of.Listed) > 10*time.Second {
				s.Errorf("the store soon after: %+v", of)
			}
			time.Sleep(2 * time.Minute)
			o := s.overview("")
			if of := o.Sources[0]; !of.OK || of.Elections != 1000 || of.Pushed || of.Interval != 15000 || of.PerMonth < 69 || of.PerMonth > 70 {
				s.Errorf("with it: %+v", of)
			}
			if len(o.Elections) != 100 || o.Matching != 1000 || o.Elections[0].Name != "shard-00000" {
				s.Errorf("%d of %d rows, from %s on", len(o.Elections), o.Matching, o.Elections[0].Name)
			}
			s.way.off.Store(true)
			time.Sleep(2 * time.Minute)
			if o = s.overview(""); o.Sources[0].OK || o.Sources[0].Elections != 1000 {
				s.Errorf("while it is away: %+v", o.Sources[0])
			}
		},
		"streams": func(s *scene) {
			s.show(s.store, elections("billing", "other"))
			time.Sleep(time.Second)
			all, stopAll := s.stream("", "")
			one, _ := s.stream("source=store&name=billing", "")
			s.lead(s.store, "billing", "a")
			s.lead(s.store, "other", "b")
			time.Sleep(time.Minute)
			const change = `event: change` + "\n" + `data: {"source":"store","name":"%s"}`
			for _, name := range []string{"billing", "other"} {
				if !strings.Contains(all.text(), fmt.Sprintf(change, name)) {
					s.Errorf("no change of %s in\n%s", name, all.text())
				}
			}
			if strings.Contains(all.text(), "renewal") || !strings.Contains(one.text(), "event: renewal\ndata: {\"at\":") || strings.Contains(one.text(), "other") {
				s.Errorf("all:\n%s\none:\n%s", all.text(), one.text())
			}
			if !strings.Contains(one.text(), ": still here\n\n") {
				s.Error("nothing keeps the connection")
			}

			stopAll()
			ids := strings.Split(all.text(), "id: ")
			last, _, _ := strings.Cut(ids[len(ids)-1], "\n")
			stop := s.lead(s.store, "other", "c")
			time.Sleep(time.Second)
			stop()
			s.store.Delete("other")
			time.Sleep(2 * lease)
			resumed, _ := s.stream("", last)
			lost, _ := s.stream("", "elsewhere-7")
			time.Sleep(time.Second)
			if text := resumed.text(); !strings.Contains(text, fmt.Sprintf(change, "other")) || strings.Contains(text, "reset") {
				s.Errorf("resumed:\n%s", text)
			}
			if !strings.Contains(lost.text(), "event: reset") {
				s.Errorf("with the id of another process:\n%s", lost.text())
			}
		},
		// A browser that reads nothing costs a bounded number of messages. It is notified that it
		// missed some.
		"a slow stream is notified of missed events": func(s *scene) {
			s.show(s.store)
			slow := &stuck{recorder: recorder{ResponseRecorder: httptest.NewRecorder()}, on: make(chan struct{})}
			go s.ServeHTTP(slow, httptest.NewRequest(http.MethodGet, "/api/stream", nil).WithContext(s.Context()))
			synctest.Wait()
			for i := range 100 {
				stop := s.lead(s.store, "billing", fmt.Sprint(i))
				time.Sleep(2 * lease)
				stop()
			}
			close(slow.on)
			time.Sleep(time.Second)
			if text := slow.text(); !strings.Contains(text, "event: reset") || strings.Count(text, "event: change") > 70 {
				s.Errorf("it got %d messages:\n%.300s", strings.Count(text, "event: change"), text)
			}
		},
		"too many streams": func(s *scene) {
			s.show(s.store)
			for range 256 {
				s.stream("", "")
			}
			time.Sleep(time.Second)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/stream", nil))
			if w.Code != http.StatusServiceUnavailable {
				s.Errorf("one more got %d", w.Code)
			}
		},
		"requests": func(s *scene) {
			s.show(s.store, elections("x"))
			time.Sleep(time.Second)
			for request, code := range map[string]int{
				"GET /": 200, "GET /nothing": 404, "POST /api/overview": 405, "HEAD /api/stream": 405,
				"POST /api/hand-over": 405, "POST /api/reset": 405, // no actions by default
				"GET /api/overview": 200, "GET /api/overview?limit=0": 400, "GET /api/overview?offset=-1": 400,
				"GET /api/overview?limit=x": 400, "GET /api/overview?sort=x": 400, "GET /api/overview?sort=store": 200,
				"GET /api/overview?limit=1001": 400, "GET /api/overview?offset=100000": 200,
				"GET /api/overview?offset=9223372036854775807": 200, // too large: no panic
				"GET /api/election?source=store&name=none":     404, "GET /api/election": 404,
			} {
				ctx, cancel := context.WithTimeout(s.Context(), time.Hour) // for a stream
				method, path, _ := strings.Cut(request, " ")
				w := httptest.NewRecorder()
				s.ServeHTTP(w, httptest.NewRequest(method, path, nil).WithContext(ctx))
				cancel()
				wantCode(s.T, request, w.Code, w.Body.String(), code)
				if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
					s.Errorf("%s has the policy %q", request, csp)
				}
			}
		},
		// A store that cannot be reached at first is shown with the reason.
		"a store that cannot be reached at first": func(s *scene) {
			there := make(chan struct{})
			connect := func(ctx context.Context, waiting func(error)) (driver.Store, error) {
				waiting(fmt.Errorf("connection refused"))
				select {
				case <-there:
					return memory.New(), nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			s.show(nil, func(of *Source) { of.Connect = connect })
			time.Sleep(time.Minute)
			if of := s.overview("").Sources[0]; of.OK || of.Problem != "the store cannot be reached or refuses requests" || of.Detail != "connection refused" || of.Away == nil || of.Elections != 0 {
				s.Errorf("before: %+v", of)
			}
			close(there)
			time.Sleep(time.Minute)
			if of := s.overview("").Sources[0]; !of.OK || of.Elections != 1 || !of.Pushed {
				s.Errorf("after: %+v", of)
			}
		},
	}.play(t)
}

// recorder collects a stream.
type recorder struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(b)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Body.String()
}

// stream follows a stream until the test ends.
func (s *scene) stream(query, lastID string) (r *recorder, stop func()) {
	r = &recorder{ResponseRecorder: httptest.NewRecorder()}
	ctx, cancel := context.WithCancel(s.Context())
	request := httptest.NewRequest(http.MethodGet, "/api/stream?"+query, nil).WithContext(ctx)
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	go s.ServeHTTP(r, request)
	synctest.Wait() // it has begun
	return r, cancel
}

// stuck accepts its first bytes late.
type stuck struct {
	recorder
	on chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.on
	return s.recorder.Write(b)
}

// The other tests read the answers with their own types. The page must have the same names.
func TestPageReadsTheNamesOfAnswers(t *testing.T) {
	var page strings.Builder
	err := fs.WalkDir(files, "page", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".js" {
			text, _ := files.ReadFile(path)
			page.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []any{
		overview{}, links{}, sourceRow{}, row{}, key{}, detail{}, timeLeft{}, recordRow{}, term{}, gap{}, outage{}, trouble{}, renewal{},
		event{}, memberRow{}, presenceRow{}, jobRow{},
	} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(page.String()) {
				t.Errorf("no script has %q of %T", name, of)
			}
		}
	}
}

func TestWrongConfigs(t *testing.T) {
	source := func(change func(*Source)) Config {
		s := Source{Name: "a", Store: memory.New(), Elections: []string{"x"}}
		change(&s)
		return Config{Sources: []Source{s}}
	}
	twice, script := source(func(*Source) {}), source(func(*Source) {})
	twice.Sources = append(twice.Sources, twice.Sources[0])
	script.LogURL = "javascript:alert(1)"
	for want, cfg := range map[string]Config{
		"there is no source":    {},
		"has no name":           source(func(s *Source) { s.Name = "" }),
		"two sources":           twice,
		"has no store":          source(func(s *Source) { s.Store = nil }),
		"must be from 1s to 1h": source(func(s *Source) { s.Interval = time.Millisecond }),
		"no http or https URL":  script,
		`"file:///etc/passwd", which is no http`: source(func(s *Source) {
			s.Members = []string{"file:///etc/passwd"}
		}),
		`"ftp://host/member", which is no http`: source(func(s *Source) {
			s.Members = []string{"ftp://me:secret@host/member?token=secret"}
		}),
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// BenchmarkOverview measures one answer of the overview with many elections, after the store has
// shown all of them.
func BenchmarkOverview(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint("elections=", n), func(b *testing.B) {
			d, err := New(Config{Sources: []Source{{Name: "store", Store: memory.New(), Elections: shards(n)}}})
			if err != nil {
				b.Fatal(err)
			}
			go d.Run(b.Context())
			ask := func() string {
				w := httptest.NewRecorder()
				d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/overview", nil))
				return w.Body.String()
			}
			for !strings.Contains(ask(), fmt.Sprintf(`"vacant":%d`, n)) { // up to its time limit
			}
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
		})
	}
}
