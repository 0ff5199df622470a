package agent

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
)

// FuzzCampaign: a body that is accepted names only fields of the interface, and the election has
// the very times that it names. Otherwise the answer is a problem.
func FuzzCampaign(f *testing.F) {
	f.Add(`{"id":"a","leaseMillis":15000,"heartbeatMillis":1000,"metadata":{"k":"v"}}`)
	f.Add(`{"leaseMillis":288230376151726744}`)
	f.Add(`{"stopWithinMillis":-1}`)
	f.Add(`{} {}`)
	f.Add("")
	store := memory.New()
	f.Fuzz(func(t *testing.T, body string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		var q campaignRequest
		if !read(w, r, &q) {
			checkProblem(t, w, body)
			return
		}
		if len(body) > mostBody {
			t.Errorf("%d bytes are accepted", len(body))
		}
		cfg := q.config(tenure.Config{ID: "x"})
		if _, err := tenure.New(store, "billing", cfg); err != nil {
			return
		}
		for name, pair := range map[string]struct {
			got  time.Duration
			sent *millis
		}{
			"lease": {cfg.Lease, q.LeaseMillis}, "stopWithin": {cfg.StopWithin, q.StopWithinMillis}, "finishWithin": {cfg.FinishWithin, q.FinishWithinMillis},
		} {
			if pair.sent != nil && int64(*pair.sent) != pair.got.Milliseconds() {
				t.Errorf("%s: %s of %d ms is accepted as %v", body, name, *pair.sent, pair.got)
			}
		}
		if d, err := q.interval(cfg.WithDefaults().Lease); err == nil && q.HeartbeatMillis != nil && int64(*q.HeartbeatMillis) != d.Milliseconds() {
			t.Errorf("%s: an interval of %d ms is accepted as %v", body, *q.HeartbeatMillis, d)
		}
	})
}

func checkProblem(t *testing.T, w *httptest.ResponseRecorder, sent string) {
	t.Helper()
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code < 400 || p.Title == "" || p.Remedy == "" {
		t.Errorf("%q is answered by %d %s, %v", sent, w.Code, w.Body, err)
	}
}

// FuzzNeeds: a parameter is a duration from 0 to the limit, or the answer is a problem.
func FuzzNeeds(f *testing.F) {
	f.Add("needs", "500ms", int64(time.Hour))
	f.Add("needs", "-1s", int64(time.Hour))
	f.Add("needs", "2562047h47m16.854775807s", int64(1))
	f.Fuzz(func(t *testing.T, name, text string, most int64) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/?"+url.Values{name: {text}}.Encode(), nil)
		switch d, ok := durationOf(w, r, "needs", time.Duration(most)); {
		case !ok:
			checkProblem(t, w, text)
		case d < 0 || d > max(time.Duration(most), 0):
			t.Errorf("%q is %v, of at most %v", text, d, time.Duration(most))
		case w.Body.Len() > 0:
			t.Errorf("%q is accepted and refused", text)
		}
	})
}

// FuzzLocal: no text of an address that is not of this machine counts as local.
func FuzzLocal(f *testing.F) {
	f.Add("127.0.0.1:1")
	f.Add("[::ffff:127.0.0.1]:1")
	f.Add("127.0.0.1.example.com:1")
	f.Fuzz(func(t *testing.T, address string) {
		if isLocal(&http.Request{RemoteAddr: address}) && !strings.HasPrefix(address, "127.") && !strings.HasPrefix(address, "[") {
			t.Errorf("%q is local", address)
		}
	})
}
