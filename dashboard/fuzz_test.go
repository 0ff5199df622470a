package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// FuzzAction: only a body of the type JSON is an action, and only of bounded size.
func FuzzAction(f *testing.F) {
	f.Add("application/json; charset=utf-8", []byte(`{"source":"s","name":"billing","to":"a","term":3,"force":true}`))
	f.Add("application/json", []byte(`{"lease":9223372036854775807}`))
	f.Add("text/plain", []byte(`{}`))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/api/reset", bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		a, err := read(httptest.NewRecorder(), r)
		if (a == nil) == (err == nil) {
			t.Fatalf("%s: %q is read as %+v, %v", kind, body, a, err)
		}
		if err == nil && !strings.HasPrefix(strings.ToLower(strings.TrimSpace(kind)), "application/json") {
			t.Errorf("%q is accepted as JSON", kind)
		}
		if err == nil {
			if text, err := json.Marshal(a); err != nil || len(a.To) > maxAction {
				t.Errorf("%q is read as %s, %v", body, text, err)
			}
		}
	})
}

// FuzzHistory: no file makes the reader panic or keep more than the limits, and an error names a
// line of the file.
func FuzzHistory(f *testing.F) {
	f.Add([]byte(`{"tenure_dashboard_history":1}` + "\n" + `{"source":"s","name":"billing","term":{"leader":"a","term":3,"from":"2026-01-02T03:04:05Z"}}` + "\n"))
	f.Add([]byte(`{"tenure_dashboard_history":1}` + "\n" + `{"source":"s","outage":{"from":"2026-01-02T03:04:05Z"}}` + "\n" + `{"gap":{"from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:04:06Z"}}` + "\n{"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h := &history{pasts: map[key]past{}, outages: map[string][]outage{}}
		_, err := h.read(bytes.NewReader(text))
		var damaged errDamaged
		if errors.As(err, &damaged) && (int(damaged) < 1 || int(damaged) > bytes.Count(text, []byte("\n"))+1) {
			t.Errorf("%q has no line %d", text, damaged)
		}
		for k, p := range h.pasts {
			if len(p.terms) > maxTerms || len(p.events) > maxEvents {
				t.Errorf("%+v has %d terms and %d events", k, len(p.terms), len(p.events))
			}
		}
		h.forgetOld(time.Now())
		if len(h.pasts) > maxElections || len(h.gaps) > maxGaps {
			t.Errorf("%d elections and %d gaps", len(h.pasts), len(h.gaps))
		}
	})
}

// FuzzLastEventID: whatever a browser claims to have received, it gets what it missed or a reset,
// and never a message twice.
func FuzzLastEventID(f *testing.F) {
	f.Add(uint64(3), "-", uint8(5))
	f.Add(uint64(18446744073709551615), "-", uint8(200))
	f.Add(uint64(0), "", uint8(0))
	f.Fuzz(func(t *testing.T, after uint64, between string, messages uint8) {
		h := newHub()
		for range messages {
			h.changed(key{"s", "billing"})
		}
		id := strings.Replace(h.name(after), "-", between, 1)
		s, err := h.open(nil, id)
		if err != nil {
			t.Fatal(err)
		}
		defer h.close(s)
		got := len(s.pending)
		switch missed := s.missed.Load(); {
		case missed && got > 0 && got < maxPending: // else more were missed than can wait
			t.Errorf("%q gets a reset and %d messages", id, got)
		case !missed && between == "-" && after <= h.last && uint64(got) != h.last-after:
			t.Errorf("%q gets %d of %d messages", id, got, h.last-after)
		}
	})
}
