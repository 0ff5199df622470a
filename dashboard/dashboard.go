package dashboard

import (
	"cmp"
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"
)

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
		log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), hub: newHub(), ended: make(chan struct{}),
	}
	if cfg.History != "" {
		var err error
		if d.history, err = openHistory(cfg.History, time.Now()); err != nil {
			return nil, err
		}
	}
	for _, of := range cfg.Sources {
		d.sources = append(d.sources, newSource(of, cfg.Clock, d.hub, d.history))
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
