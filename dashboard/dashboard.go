// Package dashboard shows elections in a browser. Use it to see which member leads each election
// and which members led before. It compares the time of each failover with the shortest possible
// time. If the store pushes changes, it also shows how close each renewal came to its deadline.
//
//	sources := []dashboard.Source{{Name: "orders", Store: store}}
//	d, err := dashboard.New(dashboard.Config{Sources: sources})
//	...
//	go d.Run(ctx)
//	http.Handle("/elections/", http.StripPrefix("/elections", d))
//
// A Dashboard observes, and writes nothing to a store unless Config.Actions is set. It remembers
// the terms that it saw itself, up to 200 of each election, and with Config.History keeps them
// across a restart. Requests are not authenticated: put the handler behind the same authentication
// as your other pages for operators.
//
// The command `tenure dashboard` serves the same without any code.
package dashboard

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
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
	// Elections are the names of the elections. If it is empty, the store must be a
	// driver.Inspector that can list its keys. The Dashboard lists them every 10 s, or less often
	// if a listing takes more than 0.2 s, up to once a minute. An election that is no longer listed
	// stays on the page. If it then has no record, and had no leader for a minute, it is not
	// observed until it is listed again. At most 20,000 are shown.
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
	// vanishedAfter is how long an election without a record must have had no leader to count as
	// vanished. In a store that was recreated, candidates put records within seconds.
	vanishedAfter = time.Minute
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

const observerID = "dashboard"

// observerConfig returns the settings of the elections of a store.
func (s *Source) observerConfig(store driver.Store, onEvent func(tenure.Event)) tenure.Config {
	cfg := tenure.Config{ID: observerID, Lease: max(lease, driver.AbilitiesOf(store).MinLease()), OnEvent: onEvent}
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

// Dashboard is an http.Handler that shows elections. Its methods may be called concurrently.
type Dashboard struct {
	version        string
	actionsAllowed bool
	links          links
	log            *slog.Logger
	sources        []*source
	hub            *hub
	history        *history
	pages          http.Handler
	ended          chan struct{} // closed once Run's context has ended
}

//go:embed page
var files embed.FS

// New opens the history and returns a Dashboard that observes nothing until Run is called. The
// error lists all problems of the Config, or says what is wrong with the history.
func New(cfg Config) (*Dashboard, error) {
	cfg = cfg.clone()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	d := &Dashboard{
		version: cfg.Version, actionsAllowed: cfg.Actions, links: links{cfg.LogURL, cfg.RunbookURL},
		log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), hub: newHub(), history: &history{},
		ended: make(chan struct{}),
	}
	if cfg.History != "" {
		var err error
		if d.history, err = openHistory(cfg.History, time.Now()); err != nil {
			return nil, err
		}
	}
	for _, of := range cfg.Sources {
		d.sources = append(d.sources, newSource(of, d.hub, d.history))
	}
	d.pages = d.routes()
	return d, nil
}

// Run observes the elections until ctx ends, and then closes the history and returns. Call it once.
// When ctx has ended, streams to browsers end, so that http.Server.Shutdown does not wait for them,
// and new streams and actions are refused.
func (d *Dashboard) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range d.sources {
		all.Go(func() { s.run(ctx) })
		for _, address := range s.Members {
			all.Go(func() { s.reports.run(ctx, address) })
		}
	}
	all.Go(func() { d.history.run(ctx, d.remember, func() { d.hub.changed(key{}) }) })
	<-ctx.Done()
	close(d.ended)
	all.Wait()
}

// untilEnded refuses requests once Run's context has ended, because the state is then out of date.
func (d *Dashboard) untilEnded(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-d.ended:
			refuse(w, http.StatusServiceUnavailable, "the dashboard has ended")
		default:
			h.ServeHTTP(w, r)
		}
	}
}

// remember passes everything that the history keeps to add.
func (d *Dashboard) remember(add func(line)) {
	for _, s := range d.sources {
		rememberOutages(s.Name, s.outagesSince(time.Time{}), add)
		for _, e := range s.all() {
			e.past().write(e.key, add)
		}
	}
}

func (d *Dashboard) routes() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // it cannot happen: the directory is embedded
	}
	m := http.NewServeMux()
	m.HandleFunc("GET /api/overview", d.serveOverview)
	m.HandleFunc("GET /api/election", d.serveElection)
	m.HandleFunc("GET /api/stream", d.untilEnded(http.HandlerFunc(d.serveStream)))
	m.Handle("GET /", http.FileServerFS(page))
	if d.actionsAllowed {
		acts := http.NewServeMux()
		d.actions(acts)
		m.HandleFunc("POST /api/", d.untilEnded(acts))
	}
	return m
}

// policy lets the page load what this handler serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP serves the page, its files and its API. All URLs of the page are relative: to serve it
// below a prefix, wrap the Dashboard in http.StripPrefix.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	d.pages.ServeHTTP(w, r)
}

const (
	defaultRows = 100
	maxRows     = 1000
)

func (d *Dashboard) serveOverview(w http.ResponseWriter, r *http.Request) {
	offset, limit := intParameter(r, "offset", 0), intParameter(r, "limit", defaultRows)
	if offset < 0 || limit < 1 || limit > maxRows {
		refuse(w, http.StatusBadRequest, "offset must be at least 0, and limit from 1 to "+strconv.Itoa(maxRows))
		return
	}
	by, ok := orders[r.FormValue("sort")]
	if !ok {
		refuse(w, http.StatusBadRequest, "sort must be name, store, leader, since or changes, or be left out")
		return
	}
	o := d.overview(r.FormValue("q"), health(r.FormValue("health")), by)
	answer(w, http.StatusOK, o.page(offset, limit))
}

// intParameter returns an integer parameter, or -1 if it is not one.
func intParameter(r *http.Request, name string, usual int) int {
	text := r.FormValue(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

func (d *Dashboard) serveElection(w http.ResponseWriter, r *http.Request) {
	s, e := d.find(requestedKey(r))
	if e == nil {
		refuse(w, http.StatusNotFound, "there is no such election")
		return
	}
	answer(w, http.StatusOK, s.detail(e))
}

// requestedKey returns the key of the election that a request asks for.
func requestedKey(r *http.Request) key { return key{r.FormValue("source"), r.FormValue("name")} }

func (d *Dashboard) find(k key) (*source, *election) {
	for _, s := range d.sources {
		if s.Name == k.Source {
			return s, s.find(k.Name)
		}
	}
	return nil, nil
}

func answer(w http.ResponseWriter, code int, data any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(encode(data)) // an error means that the browser has gone
}

func refuse(w http.ResponseWriter, code int, why string) {
	answer(w, code, map[string]string{"error": why})
}
