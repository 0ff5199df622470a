package dashboard_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// act posts an action as the page does. It returns the status code and the reason.
func (s shown) act(name string, body map[string]any, headers ...string) (int, string) {
	s.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/api/"+name, bytes.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.SetBasicAuth("alice", "secret")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func acting(t *testing.T, store driver.Store, log *bytes.Buffer) shown {
	t.Helper()
	d, err := dashboard.New(dashboard.Config{
		Sources: []dashboard.Source{{Name: "store", Store: store, Elections: []string{"billing"}}}, Clock: clock.Standard{},
		Actions: true, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	go d.Run(t.Context())
	return shown{t, d}
}

func wantCode(t *testing.T, what string, code int, why string, want int) {
	t.Helper()
	if code != want {
		t.Errorf("%s: %d %s, want %d", what, code, why, want)
	}
}

func TestHandOverByThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var log bytes.Buffer
		s := acting(t, store, &log)
		time.Sleep(time.Second)
		body := map[string]any{"source": "store", "name": "billing", "to": "c"}
		code, why := s.act("hand-over", body)
		wantCode(t, "no leader", code, why, http.StatusConflict)
		lead(t, store, "billing", "a")
		time.Sleep(2 * lease)
		lead(t, store, "billing", "b")
		lead(t, store, "billing", "c")
		time.Sleep(time.Second)
		term := s.about("billing").Row.Term

		body["term"] = term - 1
		code, why = s.act("hand-over", body)
		wantCode(t, "of another term", code, why, http.StatusConflict)
		body["term"] = term
		for _, headers := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "http://evil.example"},
		} {
			code, why = s.act("hand-over", body, headers...)
			wantCode(t, "of another origin", code, why, http.StatusForbidden)
		}
		code, why = s.act("hand-over", body, "Content-Type", "text/plain")
		wantCode(t, "a form", code, why, http.StatusBadRequest)
		code, why = s.act("hand-over", map[string]any{"source": "store", "name": "other"})
		wantCode(t, "of no election", code, why, http.StatusNotFound)
		time.Sleep(lease)
		if a := s.about("billing"); a.Row.Leader != "a" || a.Row.Term != term {
			t.Fatalf("a refused request had an effect: %+v", a.Row)
		}

		body["to"] = "a"
		code, why = s.act("hand-over", body)
		wantCode(t, "to the leader", code, why, http.StatusConflict)
		body["to"] = "gone"
		code, why = s.act("hand-over", body)
		wantCode(t, "to nobody", code, why, http.StatusOK)
		if a := s.about("billing"); a.Row.Leader != "a" || a.Record.Request == nil || !a.Record.Request.Offer || a.Record.Request.By != "alice" {
			t.Errorf("after an offer to nobody: %+v", a.Record)
		}
		body["to"] = "c"
		code, why = s.act("hand-over", body)
		wantCode(t, "in order", code, why, http.StatusOK)
		time.Sleep(lease)
		if a := s.about("billing"); a.Row.Leader != "c" || a.Terms[0].Ended != "released" {
			t.Errorf("after the hand-over: %+v", a)
		}
		if text := log.String(); !strings.Contains(text, "level=INFO msg=\"dashboard: hand-over\" store=store election=billing to=c force=false user=alice") ||
			strings.Contains(text, "secret") || strings.Count(text, "level=WARN") != 3 {
			t.Errorf("the log says\n%s", text)
		}
	})
}

// Between two reads of a store that does not push, the store has a later term.
func TestHandOverOfALeaderNotYetShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		s := acting(t, store, &bytes.Buffer{})
		lead(t, store, "billing", "a")
		time.Sleep(3*lease + time.Second) // between two renewals
		term := s.about("billing").Row.Term
		e, err := store.Read(t.Context(), "billing")
		if err != nil {
			t.Fatal(err)
		}
		is := func(term uint64) []byte { return fmt.Appendf(nil, `"term":%d,`, term) }
		later := bytes.Replace(e.Value, is(term), is(term+1), 1)
		if bytes.Equal(later, e.Value) {
			t.Fatalf("the record has no term %d: %s", term, e.Value)
		}
		store.Put("billing", later)
		code, why := s.act("hand-over", map[string]any{"source": "store", "name": "billing", "to": "c", "term": term})
		wantCode(t, "of another term than the page shows", code, why, http.StatusConflict)
		if e, err := store.Read(t.Context(), "billing"); err != nil || !bytes.Equal(e.Value, later) {
			t.Errorf("the record has become %s, %v", e.Value, err)
		}
	})
}

func TestResetByThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		s := acting(t, store, &bytes.Buffer{})
		lead(t, store, "billing", "a")
		time.Sleep(time.Second)
		body := map[string]any{"source": "store", "name": "billing", "confirm": "billing", "lease_ms": 15000, "digest": s.about("billing").Record.Digest}
		code, why := s.act("reset", body)
		wantCode(t, "a sound record", code, why, http.StatusConflict)

		junk := "junk \xff<b>" + strings.Repeat("x", 5000)
		store.Put("billing", []byte(junk))
		time.Sleep(2 * lease)
		code, why = s.act("reset", body)
		wantCode(t, "another record than the page showed", code, why, http.StatusConflict)
		body["digest"], body["confirm"] = s.about("billing").Record.Digest, "Billing"
		code, why = s.act("reset", body)
		wantCode(t, "another name", code, why, http.StatusBadRequest)
		body["confirm"] = "billing"
		for _, ms := range []int64{0, -1, lease.Milliseconds() - 1, 1<<58 + 1, time.Hour.Milliseconds() + 1} {
			body["lease_ms"] = ms
			code, why = s.act("reset", body)
			wantCode(t, fmt.Sprintf("a lease of %d ms", ms), code, why, http.StatusBadRequest)
		}
		body["lease_ms"] = lease.Milliseconds()
		// They look the same on the page, which shows neither anything after 4 KiB nor bytes that
		// are not text.
		for _, other := range []string{junk + "y", strings.Replace(junk, "\xff", "\xfe", 1)} {
			store.Put("billing", []byte(other))
			code, why = s.act("reset", body)
			wantCode(t, "another value", code, why, http.StatusConflict)
		}
		store.Put("billing", []byte(junk))
		if a := s.about("billing"); a.Record.Kind != "foreign" {
			t.Fatalf("a refused request had an effect: %+v", a.Record)
		}
		code, why = s.act("reset", body)
		wantCode(t, "in order", code, why, http.StatusOK)
		time.Sleep(3 * lease)
		if a := s.about("billing"); a.Row.Leader != "a" || a.Row.Health != "ok" {
			t.Errorf("after the reset: %+v", a.Row)
		}
	})
}

// Without permission there are no actions.
func TestNoActionsByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}})
		lead(t, store, "billing", "a")
		time.Sleep(time.Second)
		code, why := s.act("hand-over", map[string]any{"source": "store", "name": "billing", "term": s.about("billing").Row.Term})
		wantCode(t, "hand-over", code, why, http.StatusMethodNotAllowed)
		code, why = s.act("reset", map[string]any{"source": "store", "name": "billing"})
		wantCode(t, "reset", code, why, http.StatusMethodNotAllowed)
	})
}
