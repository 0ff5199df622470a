package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/agent"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/pipenet"
)

// exchange is a request and its answer.
type exchange struct {
	method, path, body, kind string
	status                   int
	answer                   []byte
}

// scene is an agent in virtual time. It notes all exchanges.
type scene struct {
	*testing.T
	store   faults.Store
	agent   *agent.Agent
	handler http.Handler
	url     string
	http    *http.Client
	all     *[]exchange
}

func newScene(t *testing.T, all *[]exchange, cfg agent.Config) *scene {
	t.Helper()
	s := &scene{T: t, store: faults.New(memory.New(), 1, faults.Plan{}), all: all}
	cfg.Election, cfg.Sidecar = tenure.Config{Lease: 15 * time.Second}, "side"
	var err error
	if s.agent, err = agent.New(driver.Store(s.store), cfg); err != nil {
		t.Fatal(err)
	}
	network := new(pipenet.Network)
	l, err := network.Listen("tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	s.handler = s.agent.Handler()
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "127.0.0.1:1" // addresses of the network in memory have no IP
		s.handler.ServeHTTP(w, r)
	})}}
	server.Start()
	s.url, s.http = server.URL, network.Client()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		s.agent.Close(context.Background())
		time.Sleep(time.Minute)
	})
	return s
}

// ask makes a request with an answer that ends.
func (s *scene) ask(method, path, body string) exchange {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	answer, err := s.http.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return s.note(exchange{method, path, body, answer.Header.Get("Content-Type"), answer.StatusCode, text})
}

func (s *scene) note(e exchange) exchange {
	*s.all = append(*s.all, e)
	return e
}

// stream makes a request for a stream, and returns the data of the first event with
// data, and a function that ends it.
func (s *scene) stream(method, path, body, accept string) (data map[string]any, lines *bufio.Scanner, end func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	answer, err := s.http.Do(r) //nolint:bodyclose // end closes it
	if err != nil {
		s.Fatal(err)
	}
	s.note(exchange{method, path, body, answer.Header.Get("Content-Type"), answer.StatusCode, nil})
	lines = bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(text), &data); err != nil {
				s.Fatal(err)
			}
			break
		}
	}
	return data, lines, func() { cancel(); answer.Body.Close() }
}

// campaign begins a campaign and returns its path.
func (s *scene) campaign(body string) (path string, lines *bufio.Scanner, end func()) {
	s.Helper()
	first, lines, end := s.stream(http.MethodPost, "/v1/elections/e/campaign", body, "")
	return fmt.Sprint("/v1/elections/e/campaigns/", first["campaign"]), lines, end
}

// talk makes requests with each answer that the document names.
func talk(t *testing.T, all *[]exchange) {
	t.Helper()
	s := newScene(t, all, agent.Config{MaxCampaigns: 2, MaxWaiting: 1})
	s.ask("GET", "/v1/openapi.json", "")
	s.ask("GET", "/v1/elections/e", "")
	s.ask("GET", "/", "")
	s.ask("GET", "/follower/e", "")
	s.ask("GET", "/leader/e", "")
	a, lines, endA := s.campaign(`{"id":"a","heartbeatMillis":3600000,"priority":1,"metadata":{"zone":"x"}}`)
	defer endA()
	for lines.Scan() && lines.Text() != "event: elected" {
	}
	go func() {
		for lines.Scan() {
		}
	}()
	token := s.standing(s.ask("POST", a+"/heartbeat", `{"number":1}`))
	s.ask("GET", a+"/may-act?needs=1s", "")
	s.ask("GET", "/leader/e?needs=1s", "")
	s.ask("GET", "/v1/elections/e", "")
	s.ask("GET", "/v1/elections", "")
	s.refusals(a, token)
	b, _, endB := s.campaign(`{"id":"b"}`)
	s.ask("GET", "/v1/elections/e?wait=1s", "")
	s.ask("POST", b+"/hand-over", `{}`) // it does not lead
	s.ask("POST", "/v1/elections/e/campaign", `{"id":"c"}`)
	s.ask("DELETE", b, "")
	endB()
	s.ask("POST", a+"/hand-over", `{}`)
	s.ask("POST", a+"/finished", fmt.Sprintf(`{"token":%d}`, token))
	s.ask("GET", "/follower/e", "")
	s.ask("PUT", a+"/eligible", `{"eligible":true}`)
	_, _, end := s.stream("GET", "/v1/elections/e/events", "", "")
	s.ask("GET", "/v1/elections/e/events", "")
	s.ask("GET", "/v1/elections/e?wait=1s", "")
	end()
	synctest.Wait()
	_, _, end = s.stream("GET", "/", "", "text/event-stream")
	end()
	s.outage(a)
	s.agent.Close(s.Context())
	s.ask("GET", "/", "")
}

// standing returns the token of an answer.
func (s *scene) standing(e exchange) (token uint64) {
	s.Helper()
	var standing struct{ Token uint64 }
	if err := json.Unmarshal(e.answer, &standing); err != nil || standing.Token == 0 {
		s.Fatalf("%d %s: %v", e.status, e.answer, err)
	}
	return standing.Token
}

// refusals makes requests that are refused while a client leads.
func (s *scene) refusals(a string, token uint64) {
	s.Helper()
	const campaign, gone = "/v1/elections/e/campaign", "/v1/elections/e/campaigns/gone"
	long := strings.Repeat("x", 2000)
	posts := map[string]string{"/heartbeat": "POST", "/finished": "POST", "/hand-over": "POST", "/eligible": "PUT"}
	for path, method := range posts {
		s.ask(method, a+path, "{")
		s.ask(method, a+path, `{"x":"`+strings.Repeat("x", 20<<10)+`"}`)
		s.ask(method, gone+path, "{}")
	}
	s.ask("GET", gone+"/may-act", "")
	s.ask("DELETE", gone, "")
	s.ask("POST", a+"/heartbeat", `{"number":1}`)
	s.ask("POST", a+"/finished", fmt.Sprintf(`{"token":%d}`, token+1))
	s.ask("GET", a+"/may-act?needs=soon", "")
	s.ask("GET", "/leader/e?needs=soon", "")
	s.ask("POST", campaign, "{")
	s.ask("POST", campaign, `{"id":"`+strings.Repeat("x", 20<<10)+`"}`)
	s.ask("POST", campaign, `{"id":"a"}`)
	s.ask("POST", a+"/hand-over", `{"to":"`+long+`"}`)
	s.ask("POST", "/v1/elections/"+long+"/campaign", `{}`)
	s.ask("GET", "/v1/elections/e?wait=soon", "")
	s.ask("GET", "/v1/elections/"+long, "")
	s.ask("GET", "/v1/elections/"+long+"/events", "")
	s.ask("HEAD", "/v1/elections/e/events", "")
	s.fromAfar(http.MethodPost, campaign)
	for path, method := range posts {
		s.fromAfar(method, a+path)
	}
	s.fromAfar(http.MethodGet, a+"/may-act")
	s.fromAfar(http.MethodDelete, a)
}

// fromAfar makes a request as a client of another machine does.
func (s *scene) fromAfar(method, path string) {
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	r.RemoteAddr = "192.0.2.1:1"
	to := httptest.NewRecorder()
	s.handler.ServeHTTP(to, r)
	s.note(exchange{method, path, "{}", to.Header().Get("Content-Type"), to.Code, to.Body.Bytes()})
}

// outage makes requests while the store does not answer.
func (s *scene) outage(a string) {
	s.Helper()
	for number := 2; ; number++ { // until it leads again
		var standing struct{ Token uint64 }
		if err := json.Unmarshal(s.ask("POST", a+"/heartbeat", fmt.Sprintf(`{"number":%d}`, number)).answer, &standing); err != nil {
			s.Fatal(err)
		}
		if standing.Token != 0 {
			break
		}
		time.Sleep(time.Second)
	}
	s.store.Partition()
	s.ask("POST", a+"/hand-over", `{"to":"b"}`)
	s.ask("GET", "/v1/elections/e", "")
	s.ask("GET", "/v1/elections", "")
	s.store.Heal()
	s.ask("DELETE", a, "")
}

// operation is a request of the document, and its answers by status.
type operation struct {
	Responses map[string]struct {
		Ref     string `json:"$ref"`
		Content map[string]any
	}
}

// TestOpenAPI: each request that succeeds and each answer follow the document, and each answer that
// the document names occurs.
func TestOpenAPI(t *testing.T) {
	var all []exchange
	synctest.Test(t, func(t *testing.T) { talk(t, &all) })
	text := all[0].answer // talk asks for the document first
	var doc struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	schemas := jsonschema.NewCompiler()
	if err := schemas.AddResource("openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	// follows validates a text by the schema at a place in the document
	follows := func(text []byte, place ...string) error {
		for i := range place {
			place[i] = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(place[i])
		}
		schema, err := schemas.Compile("openapi.json#/" + strings.Join(place, "/") + "/schema")
		if err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
	seen := map[string]bool{}
	for _, e := range all {
		path, method, status := operationOf(e.path), strings.ToLower(e.method), fmt.Sprint(e.status)
		op := doc.Paths[path][method]
		said, ok := op.Responses[status]
		seen[method+" "+path+" "+status] = true
		kind, _, _ := strings.Cut(e.kind, ";")
		var err error
		switch {
		case !ok:
			err = errors.New("the document does not name this answer")
		case said.Ref == "#/components/responses/problem":
			err = follows(e.answer, "components", "responses", "problem", "content", kind)
		case kind == "application/json":
			err = follows(e.answer, "paths", path, method, "responses", status, "content", kind)
		case len(e.answer) > 0:
			err = fmt.Errorf("its type is %q", e.kind)
		case kind != "" && e.method != http.MethodHead && said.Content[kind] == nil:
			err = fmt.Errorf("the document does not name the type %q", kind)
		}
		if err != nil {
			t.Errorf("%s %.60s: %d %.200s: %v", e.method, e.path, e.status, e.answer, err)
		}
		if e.status < 300 && e.body != "" {
			if err := follows([]byte(e.body), "paths", path, method, "requestBody", "content", "application/json"); err != nil {
				t.Errorf("%s %.60s %s: %v", e.method, e.path, e.body, err)
			}
		}
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			for status := range op.Responses {
				// with another Config, "/" is not served
				if said := method + " " + path + " " + status; !seen[said] && said != "get / 404" {
					t.Errorf("no answer for %s", said)
				}
			}
		}
	}
}

// operationOf returns the path of the document for the path of a request.
func operationOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i := 1; i+1 < len(parts); i++ {
		switch parts[i] {
		case "elections", "leader", "follower":
			parts[i+1] = "{election}"
		case "campaigns":
			parts[i+1] = "{campaign}"
		}
	}
	return strings.Join(parts, "/")
}
