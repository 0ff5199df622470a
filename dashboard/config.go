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
	"github.com/tenure-go/tenure/internal/members"
)

// Config holds the settings of a Dashboard.
type Config struct {
	// Sources are the stores to show: at least one, each with its own name.
	Sources []Source
	// Version is shown on the page; it may be empty.
	Version string
	// Actions lets the page ask a leader to hand over, and reset a record that stops an election.
	// Anyone with access to the Dashboard may then do so: protect it. Requests that a browser sends
	// for a page of another origin are refused (CSRF).
	Actions bool
	// History is the path of a file that keeps terms and events for the next start, with mode 0600.
	// A crash loses those of the last second. If History is empty, nothing is kept. Each process
	// needs a file of its own: where the system can lock files, New returns an error if another
	// process uses this one. The same directory also gets a lock file, at times a new version of
	// the file, and damaged files under other names.
	History string
	// Logger logs each action, a failed one as a warning, with the user name of HTTP basic
	// authentication, which the Dashboard does not verify. By default nothing is logged.
	Logger *slog.Logger
	// LogURL and RunbookURL are templates of links that the page shows for each election, such as
	// https://logs.example/?q={election}: {store}, {election}, {leader} and {term} are replaced.
	// They must be http or https URLs; without one there is no such link.
	LogURL, RunbookURL string
	// Clock is the source of time for leases: clock.System{} by default. In tests with virtual time
	// (testing/synctest), set it to clock.Standard{}.
	Clock clock.Clock
}

// Source is a store with elections.
type Source struct {
	// Name is shown on the page, and is part of the page's URLs. It must not be empty, and should
	// hold no password.
	Name string
	// Store is the store. If it may not be reachable at first, leave it nil and set Connect. Run
	// calls Connect once. It must try until it has the store, and return an error only if ctx has
	// ended. While it tries, it calls waiting with the reason, which the page shows.
	//
	// The dashboard makes up to 8 reads of Store at once, and 256 of a store that Connect returned.
	// Do not give it a store whose connections are few and serve candidates of this program, too: a
	// leader that waits behind these reads may lose its lease. Open another store, on a pool of its
	// own.
	Store   driver.Store
	Connect func(ctx context.Context, waiting func(error)) (driver.Store, error)
	// Elections are the names of the elections. If it is empty, the store must be a driver.Lister,
	// and the Dashboard lists its elections every 10 s, or less often if a listing takes more than
	// 0.2 s, up to once a minute. An election that is no longer listed stays on the page. At most
	// 20,000 are shown.
	Elections []string
	// Members are the URLs at which processes serve a Report. The page shows the reports about
	// elections of this source, by their names. A URL that begins with "dns+", such as
	// dns+http://workers.prod.svc:9464/member, stands for one process at each address that the name
	// has when it is read. Each URL is read every 10 s, with a limit of 5 s, 1 MiB and 10,000
	// members for each process. MembersClient reads them; if it is nil, a client that follows no
	// redirects does. That client checks the certificate of a process that was found by a name
	// against this name; another client checks it against the address. The page shows the URLs
	// without their user, password and query.
	Members       []string
	MembersClient *http.Client
	// Interval is the time between two reads of each election where the store does not push
	// changes: 1 s to 1 h, 15 s by default. An election with a leader is also read when its lease
	// would be over, so an Interval longer than the lease acts like the lease. Each read is one
	// request.
	Interval time.Duration
	// Price is the price of a thousand requests, in dollars, or 0. Where the store does not push
	// changes, the page shows the cost of a read per Interval for 30 days.
	Price float64
}

const (
	defaultInterval  = 15 * time.Second
	listEvery        = 10 * time.Second
	listAtLeastEvery = time.Minute
	listWithin       = 30 * time.Second
	// listShare times the duration of a listing pass before the next one, if that is longer than
	// listEvery.
	listShare        = 50
	retryDeniedEvery = time.Minute // where the store denies reading
	// lease bounds one request to the store, and nothing else: an observer has no lease.
	lease = 15 * time.Second
)

func (c *Config) validate() error {
	var problems []error
	if len(c.Sources) == 0 {
		problems = append(problems, errors.New("dashboard: there is no source"))
	}
	for _, link := range []string{c.LogURL, c.RunbookURL} {
		if u, err := url.Parse(link); link != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https") {
			problems = append(problems, fmt.Errorf("dashboard: the link %q is no http or https URL", link))
		}
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
			if err := members.Check(m); err != nil {
				problems = append(problems, fmt.Errorf("dashboard: source %q has a member at %q, which %w", s.Name, members.Shown(m), err))
			}
		}
		names[s.Name] = true
	}
	return errors.Join(problems...)
}

func (s *Source) interval() time.Duration { return cmp.Or(s.Interval, defaultInterval) }

// pushes reports whether a store pushes changes, so that nothing is read in steady state.
func pushes(store driver.Store) bool { return driver.AbilitiesOf(store).Watcher != nil }

// observerConfig returns the settings of the elections of a store.
func (s *Source) observerConfig(store driver.Store, c clock.Clock, onEvent func(tenure.Event)) tenure.Config {
	cfg := tenure.Config{ID: "dashboard", Lease: lease, Clock: c, OnEvent: onEvent}
	cfg.Lease = max(cfg.Lease, driver.AbilitiesOf(store).MinLease())
	cfg.Tuning.Poll, cfg.Tuning.PollStable = s.interval(), s.interval() // for times without pushes
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
