package agent

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFullAgent: more campaigns than are allowed are refused, and one that ends makes room.
func TestFullAgent(t *testing.T) {
	play(t, func(s *scene) {
		s.agent.cfg.MaxCampaigns = 2
		s.campaign(`,"id":"a"`)
		b := s.campaign(`,"id":"b"`)
		begin := func() reply { return s.ask(http.MethodPost, "/v1/elections/e/campaign", `{"id":"c"}`) }
		if r := begin(); r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Remedy, "--max-campaigns") {
			t.Errorf("a third campaign: %+v", r)
		}
		b.ask(http.MethodDelete, b.path, "")
		s.campaign(`,"id":"c"`).waits("elected")
	})
}

// TestManyObservers: more clients that wait, and more elections, than are allowed are refused.
// When they are gone there is room again.
func TestManyObservers(t *testing.T) {
	play(t, func(s *scene) {
		s.agent.observers.most = 2
		_, first := s.news("")
		_, other := s.news("")
		defer other()
		for _, path := range []string{"/v1/elections/e/events", "/v1/elections/e?wait=1s"} {
			if r := s.ask(http.MethodGet, path, ""); r.Status != http.StatusServiceUnavailable || r.Remedy == "" {
				t.Errorf("%s, the third: %+v", path, r)
			}
		}
		if r := s.ask(http.MethodGet, "/v1/elections/e", ""); r.Status != http.StatusOK {
			t.Errorf("without wait: %+v", r)
		}
		first()
		synctest.Wait()
		_, third := s.news("")
		defer third()
	})
	play(t, func(s *scene) {
		for i := range observedMost {
			if r := s.ask(http.MethodGet, fmt.Sprint("/v1/elections/e", i), ""); r.Status != http.StatusOK {
				t.Fatalf("election %d: %+v", i, r)
			}
		}
		if r := s.ask(http.MethodGet, "/v1/elections/more", ""); r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Detail, "1000 elections") {
			t.Errorf("one more: %+v", r)
		}
		time.Sleep(idleFor + time.Second)
		if r := s.ask(http.MethodGet, "/v1/elections/more", ""); r.Status != http.StatusOK {
			t.Errorf("after a while: %+v", r)
		}
	})
}

// begins sends a request, and never reads the answer, over a connection of its own.
func (s *scene) begins(request string) net.Conn {
	s.Helper()
	transport, ok := s.http.Transport.(*http.Transport)
	if !ok {
		s.Fatal("no transport")
	}
	c, err := transport.DialContext(s.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		s.Fatal(err)
	}
	return c
}

// waiting returns how many clients wait for news.
func (s *scene) waiting() int {
	s.agent.observers.mu.Lock()
	defer s.agent.observers.mu.Unlock()
	return s.agent.observers.waiting
}

// TestClientThatNeverReads: its campaign ends although its connection stays open and the interval
// of its heartbeats is long, and its lease runs out. A stream of news ends, too.
func TestClientThatNeverReads(t *testing.T) {
	play(t, func(s *scene) {
		// the comments that keep a connection alive fill its buffer
		s.begins("POST /v1/elections/e/campaign HTTP/1.1\r\nHost: a\r\nContent-Length: 36\r\n\r\n" + `{"id":"a","heartbeatMillis":3600000}`)
		s.begins("GET /v1/elections/e/events HTTP/1.1\r\nHost: a\r\n\r\n")
		synctest.Wait()
		if n, waiting := len(s.agent.allCampaigns()), s.waiting(); n != 1 || waiting != 1 {
			t.Fatalf("%d campaigns, %d streams", n, waiting)
		}
		// a renewal or a comment about every 5 s
		for range 55 {
			time.Sleep(time.Minute)
		}
		if n := len(s.agent.allCampaigns()); n != 0 {
			t.Errorf("%d campaigns of a client that reads nothing", n)
		}
		time.Sleep(12 * time.Hour)
		if n := s.waiting(); n != 0 {
			t.Errorf("%d streams of a client that reads nothing", n)
		}
	})
}

// TestHeadOfAStream is refused, since it would wait for events.
func TestHeadOfAStream(t *testing.T) {
	play(t, func(s *scene) {
		answer, err := s.http.Head(s.url + "/v1/elections/e/events") //nolint:noctx // virtual time
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("it got %d", answer.StatusCode)
		}
	})
}

// TestCloseEndsStreams: when the agent shuts down, clients that wait get an answer, and others the
// reason.
func TestCloseEndsStreams(t *testing.T) {
	play(t, func(s *scene) {
		all, cancel := s.news("")
		defer cancel()
		first := <-all
		answered := make(chan sighting)
		go func() { answered <- s.sees("?wait=1m&since=" + first.Version) }()
		synctest.Wait()
		began := time.Now()
		s.agent.Close(s.Context())
		for range all {
		}
		<-answered
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		if r := s.ask(http.MethodGet, "/v1/elections/e", ""); r.Status != http.StatusServiceUnavailable || r.Remedy == "" {
			t.Errorf("after Close: %+v", r)
		}
	})
}

// TestRemoteClients: a client of another machine, or of an unknown one, observes and takes no part.
func TestRemoteClients(t *testing.T) {
	play(t, func(s *scene) {
		a := s.campaign(`,"id":"a"`)
		a.waits("elected")
		before := s.record()
		for from, status := range map[string]int{
			"192.0.2.1:1": 403, "[2001:db8::1]:1": 403, "[fe80::1%eth0]:1": 403,
			"127.0.0.1": 403, "": 403, "@": 403, // a handler in front may have replaced it
			"127.0.0.1:1": 409, "[::1]:1": 409, "[::ffff:127.0.0.1]:1": 409,
		} {
			r := httptest.NewRequest(http.MethodPost, "/v1/elections/e/campaign", strings.NewReader(`{"id":"a"}`))
			r.RemoteAddr = from
			to := httptest.NewRecorder()
			s.agent.Handler().ServeHTTP(to, r)
			if to.Code != status {
				t.Errorf("a campaign from %q: %d %s", from, to.Code, to.Body)
			}
			if status != http.StatusForbidden {
				continue
			}
			for path, method := range map[string]string{"/heartbeat": "POST", "/may-act": "GET", "/finished": "POST", "/hand-over": "POST", "/eligible": "PUT", "": "DELETE"} {
				r := httptest.NewRequest(method, a.path+path, strings.NewReader(`{}`))
				r.RemoteAddr = from
				to := httptest.NewRecorder()
				s.agent.Handler().ServeHTTP(to, r)
				if to.Code != http.StatusForbidden {
					t.Errorf("%s %s from %q: %d %s", method, path, from, to.Code, to.Body)
				}
			}
		}
		if after := s.record(); after.Term != before.Term || !after.Held() || after.Request != nil {
			t.Errorf("the record was %+v, and is %+v", before, after)
		}
	})
}
