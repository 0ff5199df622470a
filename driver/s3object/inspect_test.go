package s3object

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// cleaning is how long the removal may take after the inspection's context has ended.
const cleaning = time.Second

func (s *stub) inspect(t *testing.T, opts ...Option) []driver.Finding {
	t.Helper()
	found, err := s.probe(t, opts...).inspect(bounded(t, patience))
	must(t, err)
	return found
}

// probe returns a small inspection.
func (s *stub) probe(t *testing.T, opts ...Option) *probe {
	p := newProbe(s.open(t, opts...), 15*time.Second)
	p.races, p.pause = 4, 50*time.Millisecond
	return p
}

func ignoring(header string) func(*stub) {
	return func(s *stub) {
		s.intercept = func(_ http.ResponseWriter, r *http.Request) bool { r.Header.Del(header); return false }
	}
}

// racy delays the write after the check of its condition, for the chosen keys.
func racy(chosen func(key string) bool) func(*stub) {
	return func(s *stub) {
		s.gap = func(key string) {
			if chosen(key) {
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
}

// late is a server whose clock is behind.
func late(s *stub) { at(time.Now().Add(-10 * time.Minute).UTC().Format(http.TimeFormat))(s) }

// oneInFive counts the writes that met their condition, so that the choice is the same in each run.
func oneInFive() func(key string) bool {
	var n atomic.Int64
	return func(string) bool { return n.Add(1)%5 == 0 }
}

// fault is a fault of a server, with the finding that an inspection must report.
type fault struct {
	name     string
	change   func(*stub)
	severity driver.Severity
	setting  string
	problem  string
}

func TestInspectFinds(t *testing.T) {
	for _, c := range []fault{
		{"create-only ignored", ignoring("If-None-Match"), driver.Unsafe, "If-None-Match", "overwritten"},
		{"match ignored", ignoring("If-Match"), driver.Unsafe, "If-Match", "names another version"},
		{"races lost always", racy(func(string) bool { return true }), driver.Unsafe, "If-None-Match", "of 4 races"},
		{"races lost at times", racy(oneInFive()), driver.Unsafe, "If-None-Match", "of 32 races"},
		{"swaps lost at times", swapsLost, driver.Unsafe, "If-Match", "of 32 races"},
		{"another write is there", overwriting, driver.Unsafe, "If-Match", "another write than the acknowledged one"},
		{"nothing can be swapped", matching(func(string, string) bool { return false }), driver.Unsafe, "If-Match", "renew"},
		{"nothing can be created", neverCreated, driver.Unsafe, "If-None-Match", "no election"},
		{"the removed come back", resurrecting, driver.Warning, "If-Match", "creates a deleted object again"},
		{"bare ETags alone", matching(bareOnly), driver.Advice, "If-Match", "quotes"},
		{"no Date", at(""), driver.Warning, "Date", "lower term"},
		{"a clock apart", late, driver.Advice, "clock", "apart"},
		{"versions", func(s *stub) { s.revision = "<Status>Enabled</Status>" }, driver.Advice, "versioning", "12 a minute and 17280 a day"},
		{"no right to delete", func(s *stub) { s.undeleted = true }, driver.Advice, "s3:DeleteObject", "6 objects"},
		{"too many requests", busyRaces, driver.Warning, "If-None-Match", "prove nothing"},
		{"stale reads", staleReads, driver.Warning, "consistency", "read does not see"},
		{"ETags of the length", lengthETags, driver.Unsafe, "ETag", "same ETag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { c.find(t) })
		})
	}
}

func (c fault) find(t *testing.T) {
	s := startStub(t, c.change)
	p := s.probe(t)
	if strings.Contains(c.problem, "of 32") {
		p = newProbe(p.s, p.lease)
	}
	found, err := p.inspect(bounded(t, patience))
	must(t, err)
	if len(found) == 0 || len(found) > 3 {
		t.Errorf("findings: %v", found)
	}
	if !has(found, c.severity, c.setting, c.problem) {
		t.Errorf("want %v about %s: %q; found %v", c.severity, c.setting, c.problem, found)
	}
	if n := len(s.objects); n > 0 && !s.undeleted {
		t.Errorf("%d objects stay", n)
	}
}

func has(found []driver.Finding, severity driver.Severity, setting, problem string) bool {
	for _, f := range found {
		if f.Severity == severity && f.Setting == setting && strings.Contains(f.Problem, problem) && f.Remedy != "" {
			return true
		}
	}
	return false
}

func swapsLost(s *stub) {
	var n atomic.Int64
	s.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("If-Match") != "" && r.ContentLength > 10 && n.Add(1)%40 == 0 {
			r.Header.Del("If-Match")
		}
		return false
	}
}

// overwriting refuses writes only in its answer. It still applies the writes that it refuses in a
// race.
var overwriting = answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("If-Match") == "" || r.ContentLength < 10 {
		return false
	}
	s.mu.Lock()
	met := s.meets(r)
	s.mu.Unlock()
	if met {
		return false
	}
	r.Header.Del("If-Match")
	s.put(discard{http.Header{}}, r)
	refuse(w, 412, "PreconditionFailed")
	return true
})

var neverCreated = answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("If-None-Match") == "" {
		return false
	}
	refuse(w, 412, "PreconditionFailed")
	return true
})

var resurrecting = answering(func(s *stub, _ http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[r.URL.Path]; !ok {
		r.Header.Del("If-Match")
	}
	return false
})

// busyRaces serves one writer at a time, and a second writer a while later.
var busyRaces = answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPut || r.ContentLength < 10 {
		return false
	}
	refuse(w, 429, "TooManyRequests")
	return true
})

var staleReads = answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || r.URL.Query().Has("versioning") {
		return false
	}
	refuse(w, 404, "NoSuchKey")
	return true
})

func lengthETags(s *stub) {
	s.etag = func(value string) string { return fmt.Sprint(len(value)) }
}

func TestInspectOfAGoodServer(t *testing.T) {
	t.Parallel()
	s := startStub(t)
	found, err := s.open(t, WithPrefix("p")).Inspect(bounded(t, patience), 15*time.Second)
	if err != nil || len(found) != 0 {
		t.Errorf("findings: %v, %v", found, err)
	}
	if len(s.objects) != 0 {
		t.Errorf("objects stay: %v", s.objects)
	}
	if n := s.count(""); n > 1135 {
		t.Errorf("%d requests, more than documented", n)
	}
	if n := s.count("PUT"); n > 1035 {
		t.Errorf("%d writes, more than documented", n)
	}
	if n := s.count("PUT /bucket/p/.tenure-probe-"); n != s.count("PUT") {
		t.Errorf("%d writes of %d are under the prefix", n, s.count("PUT"))
	}
}

// TestInspectWorksWithoutSomeRights: a missing right to read the versioning is not a finding.
func TestInspectWorksWithoutSomeRights(t *testing.T) {
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		if !r.URL.Query().Has("versioning") {
			return false
		}
		refuse(w, 403, "AccessDenied")
		return true
	}))
	if found := s.inspect(t); len(found) != 0 {
		t.Errorf("findings: %v", found)
	}
}

func TestInspectWithoutTheRightToWrite(t *testing.T) {
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			refuse(w, 403, "AccessDenied")
		}
		return r.Method == http.MethodPut
	}))
	if _, err := s.open(t).Inspect(bounded(t, patience), time.Second); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("inspect: %v", err)
	}
}

// TestInspectIsPatient: the service accepts only some of the writes to an object.
func TestInspectIsPatient(t *testing.T) { synctest.Test(t, inspectIsPatient) }

func inspectIsPatient(t *testing.T) {
	last := map[string]time.Time{}
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if time.Since(last[r.URL.Path]) < 40*time.Millisecond {
			refuse(w, 429, "TooManyRequests")
			return true
		}
		if s.meets(r) {
			last[r.URL.Path] = time.Now()
		}
		return false
	}))
	if found := s.inspect(t); len(found) != 0 {
		t.Errorf("findings: %v", found)
	}
}

func TestInspectEndsWithItsContext(t *testing.T) { synctest.Test(t, inspectEnds) }

func inspectEnds(t *testing.T) {
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			time.Sleep(20 * time.Millisecond)
		}
		return false
	}))
	const limit = 150 * time.Millisecond
	began := time.Now()
	_, err := s.open(t).Inspect(bounded(t, limit), time.Second)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("inspect: %v", err)
	}
	if took := time.Since(began); took > limit+cleaning {
		t.Errorf("it takes %v", took)
	}
}

func TestCheckRights(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		denied bool
		why    string
	}{
		"no such upload": {func(w http.ResponseWriter) { refuse(w, 404, "NoSuchUpload") }, false, "the server has looked for the upload"},
		"access denied":  {func(w http.ResponseWriter) { refuse(w, 403, "AccessDenied") }, true, "the right is missing"},
		"by a proxy":     {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, false, "a proxy that lets no POST pass says nothing of PUT"},
		"unknown":        {func(w http.ResponseWriter) { refuse(w, 501, "NotImplemented") }, false, "this server cannot answer"},
		"done":           {func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }, false, "nothing was refused"},
		"a condition":    {func(w http.ResponseWriter) { refuse(w, 412, "PreconditionFailed") }, false, "the condition came first"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStub(t, func(s *stub) {
				s.match = func(string, string) bool { return true } // it ignores conditions
				s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPost {
						c.answer(w)
						return true
					}
					return false
				}
			})
			store := s.open(t)
			s.set("cell", "precious")
			err := store.CheckRights(t.Context(), "cell")
			if errors.Is(err, driver.ErrDenied) != c.denied || !c.denied && err != nil {
				t.Errorf("got %v: %s", err, c.why)
			}
			if c.denied && !strings.Contains(err.Error(), "s3:PutObject") {
				t.Errorf("got %v, which does not say what to grant", err)
			}
			if s.value("cell") != "precious" || s.count("PUT") > 0 || s.count("POST") != 1 {
				t.Errorf("requests: %q", s.requests)
			}
		})
	}
}
