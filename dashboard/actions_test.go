package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// act posts an action as the page does. It returns the status code and the reason.
func (s *scene) act(name string, body map[string]any, headers ...string) (int, string) {
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

// acting runs a Dashboard with actions.
func (s *scene) acting(store driver.Store, log *bytes.Buffer) {
	s.Helper()
	s.run(Config{
		Sources: []Source{{Name: "store", Store: store, Elections: []string{"billing"}}},
		Actions: true, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
}

// acts checks the code of the answer to an action.
func (s *scene) acts(want int, what, name string, body map[string]any, headers ...string) {
	s.Helper()
	code, why := s.act(name, body, headers...)
	wantCode(s.T, what, code, why, want)
}

func wantCode(t *testing.T, what string, code int, why string, want int) {
	t.Helper()
	if code != want {
		t.Errorf("%s: %d %s, want %d", what, code, why, want)
	}
}

func TestActions(t *testing.T) {
	scenes{
		"hand-over": func(s *scene) {
			var log bytes.Buffer
			s.acting(s.store, &log)
			time.Sleep(time.Second)
			body := map[string]any{"source": "store", "name": "billing", "to": "c"}
			s.acts(http.StatusConflict, "no leader", "hand-over", body)
			s.lead(s.store, "billing", "a")
			time.Sleep(2 * lease)
			s.lead(s.store, "billing", "b")
			s.lead(s.store, "billing", "c")
			time.Sleep(time.Second)
			term := s.about("billing").Row.Term

			body["term"] = term - 1
			s.acts(http.StatusConflict, "of another term", "hand-over", body)
			body["term"] = term
			for _, headers := range [][]string{
				{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "http://evil.example"},
			} {
				s.acts(http.StatusForbidden, "of another origin", "hand-over", body, headers...)
			}
			s.acts(http.StatusBadRequest, "a form", "hand-over", body, "Content-Type", "text/plain")
			s.acts(http.StatusNotFound, "of no election", "hand-over", map[string]any{"source": "store", "name": "other"})
			time.Sleep(lease)
			if a := s.about("billing"); a.Row.Leader != "a" || a.Row.Term != term {
				s.Fatalf("a refused request had an effect: %+v", a.Row)
			}

			body["to"] = "a"
			s.acts(http.StatusConflict, "to the leader", "hand-over", body)
			body["to"] = "gone"
			s.acts(http.StatusOK, "to nobody", "hand-over", body)
			if a := s.about("billing"); a.Row.Leader != "a" || a.Record.Request == nil || !a.Record.Request.Offer || a.Record.Request.By != "alice" {
				s.Errorf("after an offer to nobody: %+v", a.Record)
			}
			body["to"] = "c"
			s.acts(http.StatusOK, "in order", "hand-over", body)
			time.Sleep(lease)
			if a := s.about("billing"); a.Row.Leader != "c" || a.Terms[0].Ended != "released" {
				s.Errorf("after the hand-over: %+v", a)
			}
			if text := log.String(); !strings.Contains(text, "level=INFO msg=\"dashboard: hand-over\" store=store election=billing to=c force=false user=alice") ||
				strings.Contains(text, "secret") || strings.Count(text, "level=WARN") != 3 {
				s.Errorf("the log says\n%s", text)
			}
		},
		// Between two reads of a store that does not push, the store has a later term.
		"hand-over of a leader not yet shown": func(s *scene) {
			store := memory.NewPolled()
			s.acting(store, &bytes.Buffer{})
			s.lead(store, "billing", "a")
			time.Sleep(3*lease + time.Second) // between two renewals
			term := s.about("billing").Row.Term
			e, err := store.Read(s.Context(), "billing")
			if err != nil {
				s.Fatal(err)
			}
			is := func(term uint64) []byte { return fmt.Appendf(nil, `"term":%d,`, term) }
			later := bytes.Replace(e.Value, is(term), is(term+1), 1)
			if bytes.Equal(later, e.Value) {
				s.Fatalf("the record has no term %d: %s", term, e.Value)
			}
			store.Put("billing", later)
			s.acts(http.StatusConflict, "of another term than the page shows", "hand-over", map[string]any{"source": "store", "name": "billing", "to": "c", "term": term})
			if e, err := store.Read(s.Context(), "billing"); err != nil || !bytes.Equal(e.Value, later) {
				s.Errorf("the record has become %s, %v", e.Value, err)
			}
		},
		"reset": func(s *scene) {
			s.acting(s.store, &bytes.Buffer{})
			s.lead(s.store, "billing", "a")
			time.Sleep(time.Second)
			body := map[string]any{"source": "store", "name": "billing", "confirm": "billing", "lease_ms": 15000, "digest": s.about("billing").Record.Digest}
			s.acts(http.StatusConflict, "a sound record", "reset", body)

			junk := "junk \xff<b>" + strings.Repeat("x", 5000)
			s.store.Put("billing", []byte(junk))
			time.Sleep(2 * lease)
			s.acts(http.StatusConflict, "another record than the page showed", "reset", body)
			body["digest"], body["confirm"] = s.about("billing").Record.Digest, "Billing"
			s.acts(http.StatusBadRequest, "another name", "reset", body)
			body["confirm"] = "billing"
			for _, ms := range []int64{0, -1, lease.Milliseconds() - 1, 1<<58 + 1, time.Hour.Milliseconds() + 1} {
				body["lease_ms"] = ms
				s.acts(http.StatusBadRequest, fmt.Sprintf("a lease of %d ms", ms), "reset", body)
			}
			body["lease_ms"] = lease.Milliseconds()
			// They look the same on the page, which shows neither anything after 4 KiB nor bytes
			// that are not text.
			for _, other := range []string{junk + "y", strings.Replace(junk, "\xff", "\xfe", 1)} {
				s.store.Put("billing", []byte(other))
				s.acts(http.StatusConflict, "another value", "reset", body)
			}
			s.store.Put("billing", []byte(junk))
			if a := s.about("billing"); a.Record.Kind != "foreign" {
				s.Fatalf("a refused request had an effect: %+v", a.Record)
			}
			s.acts(http.StatusOK, "in order", "reset", body)
			time.Sleep(3 * lease)
			if a := s.about("billing"); a.Row.Leader != "a" || a.Row.Health != "ok" {
				s.Errorf("after the reset: %+v", a.Row)
			}
		},
	}.play(t)
}
