package agent

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestOpenAPIHasEachRequest: the document has the requests that are served, and no others.
func TestOpenAPIHasEachRequest(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for path, methods := range doc.Paths {
		for method := range methods {
			if method != "head" { // Go serves it as GET
				said[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	for pattern := range (&Agent{cfg: Config{Sidecar: "e"}}).routes() {
		pattern = strings.TrimSuffix(pattern, "{$}")
		if !said[pattern] {
			t.Errorf("it lacks %s", pattern)
		}
		delete(said, pattern)
	}
	for pattern := range said {
		t.Errorf("%s is not served", pattern)
	}
}

// TestSidecar: GET / names the leader, and its stream each next one.
func TestSidecar(t *testing.T) {
	play(t, func(s *scene) {
		if r := s.ask(http.MethodGet, "/", ""); r.Status != http.StatusNotFound {
			t.Errorf("without the option: %+v", r)
		}
		s.agent.cfg.Sidecar = "e"
		s.listen()
		var now name
		s.decode(http.MethodGet, "/", &now)
		if now.Name != "" {
			t.Errorf("before the first leader: %+v", now)
		}
		request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "text/event-stream")
		stream, err := s.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Body.Close()
		a := s.campaign(`,"id":"a"`)
		a.waits("elected")
		lines := bufio.NewScanner(stream.Body)
		for lines.Scan() && lines.Text() != `data: {"name":"a"}` {
			if strings.HasPrefix(lines.Text(), "event:") {
				t.Errorf("an event has a name: %s", lines.Text())
			}
		}
		if lines.Text() == "" {
			t.Error("the stream ended")
		}
		s.decode(http.MethodGet, "/", &now)
		if now.Name != "a" {
			t.Errorf("the leader: %+v", now)
		}
	})
}

// TestNamesInPaths: New refuses the names with which no campaign can begin, since the path cannot
// have them.
func TestNamesInPaths(t *testing.T) {
	play(t, func(s *scene) {
		for sidecar, ok := range map[string]bool{
			"e": true, "a/b": true, "a b?c": true, "...": true, "%2e": true,
			".": false, "..": false, "a/../b": false, "a//b": false, "/a": false, "a/": false, "a/.": false,
		} {
			if _, err := New(s.store, Config{Sidecar: sidecar}); (err == nil) != ok {
				t.Errorf("%q: %v", sidecar, err)
			}
			// a wrong body, so that no campaign begins
			if r := s.ask("POST", "/v1/elections/"+url.PathEscape(sidecar)+"/campaign", "{"); (r.Status == http.StatusBadRequest) != ok {
				t.Errorf("%q: %+v", sidecar, r)
			}
		}
	})
}

// TestClientsWithoutIDs: each gets an id of its own.
func TestClientsWithoutIDs(t *testing.T) {
	play(t, func(s *scene) {
		s.campaign("").waits("elected")
		s.campaign("")
		if n := len(s.agent.allCampaigns()); n != 2 {
			t.Errorf("%d campaigns", n)
		}
	})
}
