package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
)

// Config holds the settings of an agent. The zero value of each field is its default.
type Config struct {
	// Election has the settings of each candidate. A campaign may state its own ID, Address,
	// Metadata, Priority, Lease, StopWithin and FinishWithin.
	Election tenure.Config
	// MaxCampaigns bounds the campaigns at one time: by default 2,000.
	MaxCampaigns int
	// MaxWaiting bounds the clients that wait for news of elections at one time, in long polls and
	// streams of events: by default 500. The stream of a campaign does not count.
	MaxWaiting int
	// Sidecar is the election whose leader GET / names, as the leader-elector sidecar of Kubernetes
	// did; empty: none. No part of it between slashes may be empty, "." or "..".
	Sidecar string
}

// Agent takes part in elections for the clients of Handler.
type Agent struct {
	store driver.Store
	cfg   Config
	clock clock.Clock
	log   *slog.Logger

	observers *observers
	missed    atomic.Uint64 // heartbeats

	mu        sync.Mutex
	closed    bool
	unfit     bool                 // see SetEligible
	campaigns map[string]*campaign // by their names
	changed   chan struct{}        // closed at the next change of a campaign
	running   sync.WaitGroup       // of the campaigns
}

// New returns an agent without campaigns. It does not call the store. A *tenure.ConfigError lists
// the problems of the config.
func New(store driver.Store, cfg Config) (*Agent, error) {
	if cfg.MaxCampaigns == 0 {
		cfg.MaxCampaigns = 2000
	}
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = 500
	}
	if cfg.Election.Clock == nil {
		cfg.Election.Clock = clock.Default()
	}
	log := cfg.Election.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if _, err := tenure.New(store, cmp.Or(cfg.Sidecar, "check"), cfg.Election); err != nil {
		return nil, err
	}
	if cfg.Sidecar != "" && !isServed("/v1/elections/"+cfg.Sidecar+"/campaign") {
		return nil, &tenure.ConfigError{Subject: "agent", Fields: []tenure.FieldError{{
			Field: "Name", Value: cfg.Sidecar, Problem: fmt.Sprintf("is %q", cfg.Sidecar), Remedy: unserved,
		}}}
	}
	a := &Agent{store: store, cfg: cfg, clock: cfg.Election.Clock, log: log, campaigns: map[string]*campaign{}, changed: make(chan struct{})}
	if set := cfg.Election.Metrics; set != nil {
		set.AddAgent(a.measure)
	}
	var err error
	if a.observers, err = newObservers(a); err != nil {
		return nil, err
	}
	return a, nil
}

// Handler serves the interface. Campaigns are refused to clients that connect from another machine,
// since those have another clock. The caller keeps out everyone that it does not trust.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range a.routes() {
		mux.HandleFunc(pattern, serve)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &problem{Status: http.StatusNotFound, Title: "There is no such request", Detail: r.Method + " " + r.URL.Path,
			Remedy: "GET /v1/openapi.json lists the requests"})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isServed(r.URL.Path) { // the mux would redirect the client, perhaps to another election
			refuse(w, &problem{Status: http.StatusNotFound, Title: "The path cannot be served", Detail: r.Method + " " + r.URL.Path,
				Remedy: "give the election another name: " + unserved})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// unserved says which names of elections paths can have.
const unserved = `it must have no empty part, "." or ".." between slashes, since programs put it into the path of a URL`

// isServed reports whether a path is served as it is, and not shortened on its way.
func isServed(of string) bool {
	clean := path.Clean(of)
	return clean == of || of != "//" && clean+"/" == of
}

// routes are the requests of the interface, which openapi.json describes.
func (a *Agent) routes() map[string]http.HandlerFunc {
	const one = "/v1/elections/{election}/campaigns/{campaign}"
	all := map[string]http.HandlerFunc{
		"POST /v1/elections/{election}/campaign": local(a.serveCampaign),
		"POST " + one + "/heartbeat":             a.of(serveHeartbeat),
		"GET " + one + "/may-act":                a.of(serveMayAct),
		"POST " + one + "/finished":              a.of(serveFinished),
		"POST " + one + "/hand-over":             a.of(serveHandOver),
		"PUT " + one + "/eligible":               a.of(serveEligible),
		"DELETE " + one:                          a.of(serveLeave),
		"GET /v1/elections":                      a.serveElections,
		"GET /v1/elections/{election}":           a.serveElection,
		"GET /v1/elections/{election}/events":    a.serveNews,
		"GET /leader/{election}":                 a.serveLeader,
		"GET /follower/{election}":               a.serveFollower,
		"GET /v1/openapi.json":                   serveOpenAPI,
	}
	if a.cfg.Sidecar != "" {
		all["GET /{$}"] = a.serveName
	}
	return all
}

// Close asks the clients that lead to finish, ends all campaigns and streams, and returns when they
// have ended or ctx has.
func (a *Agent) Close(ctx context.Context) {
	a.observers.close()
	a.mu.Lock()
	a.closed = true
	for _, c := range a.campaigns {
		c.cancel()
	}
	a.mu.Unlock()
	all := make(chan struct{})
	go func() {
		a.running.Wait()
		a.observers.running.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-ctx.Done():
	}
}

var (
	errClosed = errors.New("the agent is shutting down")
	errFull   = errors.New("the agent has as many campaigns as it may have")
	errTaken  = errors.New("a campaign of this election and this id is under way")
)

// add takes a campaign up.
func (a *Agent) add(c *campaign) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return errClosed
	case len(a.campaigns) >= a.cfg.MaxCampaigns:
		return errFull
	}
	for _, other := range a.campaigns {
		if other.election.Name() == c.election.Name() && other.election.ID() == c.election.ID() {
			return errTaken
		}
	}
	a.campaigns[c.name] = c
	a.judge(c)
	a.running.Add(1)
	a.noteChangeLocked()
	return nil
}

// remove forgets a campaign that is over, so that its client can begin another one.
func (a *Agent) remove(c *campaign) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.campaigns, c.name)
	a.noteChangeLocked()
}

// find returns a campaign, or nil.
func (a *Agent) find(election, name string) *campaign {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.campaigns[name]; c != nil && c.election.Name() == election {
		return c
	}
	return nil
}

// allCampaigns returns all campaigns, in no order.
func (a *Agent) allCampaigns() []*campaign {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.campaigns))
}

// campaignsOf returns the campaigns of an election.
func (a *Agent) campaignsOf(election string) (found []*campaign) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.campaigns {
		if c.election.Name() == election {
			found = append(found, c)
		}
	}
	return found
}

// leads reports whether a client of this agent leads an election, with so much time left.
func (a *Agent) leads(election string, needs time.Duration) (state, bool) {
	for _, c := range a.campaignsOf(election) {
		if s := c.state(); s.mayAct(needs) {
			return s, true
		}
	}
	return state{}, false
}
