package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
)

// Config holds the settings of a Dashboard.
type Config struct {
	// Sources are the stores that it shows: one at least, each with a name of its own.
	Sources []Source
	// Version is shown on the page; it may be empty.
	Version string
	// Actions lets the page ask a leader to hand over, and reset a record that stops an election.
	// All who may send requests to the Dashboard may do this, so protect it. Requests that a
	// browser sends for a page of another origin are refused (CSRF).
	Actions bool
	// History is the path of a file that keeps terms and events for the next start, with mode 0600.
	// Empty: nothing is kept. Each process needs a file of its own: where the system can lock
	// files, New returns an error if another process uses this one. A damaged file is kept under
	// another name.
	History string
	// Logger takes a line for each action, with the user name of HTTP basic authentication, which
	// the Dashboard does not verify. By default it discards.
	Logger *slog.Logger
	// Clock is the source of time for leases: clock.System{} by default. In tests with virtual time
	// (testing/synctest), set it to clock.Standard{}.
	Clock clock.Clock
}

// Source is a store with elections.
type Source struct {
	// Name is shown on the page, and is part of the page's URLs. It must not be empty, and should
	// hold no password.
	Name string
	// Store is the store. If it may not be reachable at first, leave it nil and set Connect.
	// Connect must try until it has the store, and return an error only if ctx has ended: after an
	// error it is not called again. While it tries, it calls waiting with the reason.
	Store   driver.Store
	Connect func(ctx context.Context, waiting func(error)) (driver.Store, error)
	// Elections are the names of the elections. If there are none, the elections are those that
	// the store lists, which must be a driver.Lister; it is asked again each minute. At most
	// 20,000 are shown. One that is no longer listed stays.
	Elections []string
	// Members are the URLs at which processes serve a Report. The page shows what they report for
	// the elections of this source, which are found by their names. Each is asked every 10 s, by
	// MembersClient or else by http.DefaultClient.
	Members       []string
	MembersClient *http.Client
	// Interval is the time between two looks at each election where the store does not push
	// changes: 1 s to 1 h, 15 s by default. Each look is one request.
	Interval time.Duration
	// Price is what a thousand requests cost, in dollars, or 0. Where the store does not push
	// changes, the page shows the cost of 30 days.
	Price float64
}

const (
	usualInterval = 15 * time.Second
	listEach      = time.Minute
	// lease bounds one request to the store, and nothing else: an observer has no lease.
	lease = 15 * time.Second
)

func (c *Config) validate() error {
	var problems []error
	if len(c.Sources) == 0 {
		problems = append(problems, errors.New("dashboard: there is no source"))
	}
	names := map[string]bool{}
	for i := range c.Sources {
		s := &c.Sources[i]
		switch {
		case s.Name == "":
			problems = append(problems, fmt.Errorf("dashboard: source %d has no name", i))
		case names[s.Name]:
			problems = append(problems, fmt.Errorf("dashboard: two sources have the name %q", s.Name))
		case s.Store == nil && s.Connect == nil:
			problems = append(problems, fmt.Errorf("dashboard: source %q has no store", s.Name))
		case s.Interval != 0 && (s.Interval < time.Second || s.Interval > time.Hour):
			problems = append(problems, fmt.Errorf("dashboard: the interval of source %q is %v; it must be from 1s to 1h", s.Name, s.Interval))
		}
		for _, m := range s.Members {
			if u, err := url.Parse(m); err != nil || u.Host == "" {
				problems = append(problems, fmt.Errorf("dashboard: source %q has a member at %q, which is no URL", s.Name, shownAddress(m)))
			}
		}
		names[s.Name] = true
	}
	return errors.Join(problems...)
}

func (s *Source) interval() time.Duration { return cmp.Or(s.Interval, usualInterval) }

// pushes reports whether a store pushes changes, so that nothing is read in steady state.
func pushes(store driver.Store) bool {
	_, ok := store.(driver.Watcher)
	return ok
}

// observing returns the settings of the elections of a store.
func (s *Source) observing(store driver.Store, c clock.Clock, hear func(tenure.Event)) tenure.Config {
	cfg := tenure.Config{ID: "dashboard", Lease: lease, Clock: c, OnEvent: hear}
	if b, ok := store.(driver.Bounded); ok {
		cfg.Lease = max(cfg.Lease, b.MinLease())
	}
	if !pushes(store) {
		cfg.Tuning.Poll, cfg.Tuning.PollStable = s.interval(), s.interval()
	}
	return cfg
}

// clone shares no slice with c.
func (c Config) clone() Config {
	c.Sources = slices.Clone(c.Sources)
	for i := range c.Sources {
		c.Sources[i].Elections = slices.Clone(c.Sources[i].Elections)
		c.Sources[i].Members = slices.Clone(c.Sources[i].Members)
	}
	return c
}
