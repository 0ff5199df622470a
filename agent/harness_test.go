package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/record"
)

const (
	lease    = 15 * time.Second
	interval = 4 * time.Second
)

// scene is an agent over a store in memory, in virtual time.
type scene struct {
	*testing.T
	store *memory.Store
	agent *Agent
	url   string
	http  *http.Client
}

func play(t *testing.T, body func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, store: memory.New()}
		s.serve(s.store)
		body(s)
	})
}

// serve starts another agent, which the clients that begin from now on use.
func (s *scene) serve(store driver.Store) {
	s.Helper()
	s.serveAs(store, tenure.Config{Lease: lease})
}

func (s *scene) serveAs(store driver.Store, cfg tenure.Config) {
	s.Helper()
	a, err := New(store, Config{Election: cfg})
	if err != nil {
		s.Fatal(err)
	}
	s.agent = a
	s.listen()
	s.Cleanup(func() {
		a.Close(context.Background())
		time.Sleep(2 * lease) // terms run out, and calls of a store that is cut off end
	})
}

// listen serves the agent at another address.
func (s *scene) listen() {
	s.Helper()
	network := new(pipenet.Network)
	l, err := network.Listen("tcp", "")
	if err != nil {
		s.Fatal(err)
	}
	handler := s.agent.Handler()
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "127.0.0.1:1" // addresses of the network in memory have no IP
		handler.ServeHTTP(w, r)
	})}}
	server.Start()
	s.url, s.http = server.URL, network.Client()
	s.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
}

// reply is the answer to a request: of success, or of a problem.
type reply struct {
	Status          int
	Title, Detail   string
	Remedy          string
	Errors          []string
	MayAct, Leader  bool
	Follower        bool
	Finish          bool
	Token, Number   uint64
	RemainingMillis int64
}

func (s *scene) ask(method, path, body string) (r reply) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	answer, err := s.http.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &r); err != nil {
			s.Fatalf("%s %s: %s: %v", method, path, text, err)
		}
	}
	r.Status = answer.StatusCode
	return r
}

// client is a program that campaigns.
type client struct {
	*scene
	path   string
	events chan told
	hangUp func()
	beats  uint64
}

// told is an event of the stream.
type told struct {
	name string
	eventData
}

// campaign begins a campaign of election "e".
func (s *scene) campaign(fields string) *client {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	s.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/elections/e/campaign",
		strings.NewReader(`{"heartbeatMillis":`+strconv.FormatInt(interval.Milliseconds(), 10)+fields+`}`))
	if err != nil {
		s.Fatal(err)
	}
	answer, err := s.http.Do(request) //nolint:bodyclose // read closes it
	if err != nil || answer.StatusCode != http.StatusOK {
		s.Fatalf("campaign: %+v, %v", answer, err)
	}
	mine := *s // it stays with this agent
	c := &client{scene: &mine, events: make(chan told, 1000), hangUp: cancel}
	go c.read(answer.Body)
	first := <-c.events
	if first.name != "campaign" || first.HeartbeatMillis != millisOf(interval) {
		s.Fatalf("it begins with %+v", first)
	}
	c.path = "/v1/elections/e/campaigns/" + first.Campaign
	return c
}

func (c *client) read(stream io.ReadCloser) {
	defer close(c.events)
	defer stream.Close()
	var e told
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		switch kind, rest, _ := bytes.Cut(lines.Bytes(), []byte(": ")); string(kind) {
		case "event":
			e = told{name: string(rest)}
		case "data":
			_ = json.Unmarshal(rest, &e.eventData)
			c.events <- e
		}
	}
}

// waits reads events until one of this name, and sends heartbeats all the while.
func (c *client) waits(name string) told {
	c.Helper()
	for {
		select {
		case e, ok := <-c.events:
			if !ok {
				c.Fatalf("the stream ended before %q", name)
			}
			if e.name == name {
				return e
			}
		case <-time.After(interval / 2):
			c.beat()
		}
	}
}

func (c *client) beat() reply {
	c.Helper()
	c.beats++
	return c.ask(http.MethodPost, c.path+"/heartbeat", `{"number":`+strconv.FormatUint(c.beats, 10)+`}`)
}

// works sends heartbeats for this time.
func (c *client) works(d time.Duration) {
	c.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(interval/2, time.Until(end)))
		if r := c.beat(); r.Status != http.StatusOK {
			c.Errorf("a heartbeat: %+v", r)
		}
	}
}

func (c *client) mayAct() reply {
	c.Helper()
	return c.ask(http.MethodGet, c.path+"/may-act", "")
}

func (c *client) finished(e told) reply {
	c.Helper()
	return c.ask(http.MethodPost, c.path+"/finished", `{"token":`+strconv.FormatUint(e.Token, 10)+`}`)
}

// record returns the record of the election.
func (s *scene) record() record.Record {
	s.Helper()
	e, err := s.store.Read(s.Context(), "e")
	if err != nil {
		s.Fatal(err)
	}
	if e.Absent() {
		return record.Record{}
	}
	r, err := record.Decode(e.Value)
	if err != nil {
		s.Fatal(err)
	}
	return r
}
