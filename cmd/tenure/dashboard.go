package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/loglimit"
)

const aboutDashboard = `Serves a page that shows all elections of one store or several: the present and the former leaders,
how close renewals came to their deadlines, and how long failovers took, with the least possible
time. It takes part in no election, and writes nothing to a store unless --allow-actions is given.
Each action is logged.

The dashboard lists the elections of a store by itself, every 10 s or less often. If it has no right to list,
name the elections with --election. It knows the time before its own start only from the file of
--history.

Only a member itself knows whether it is eligible, its priority, and its last contact with the
store. Give the URL of each member with --member; the page shows its answers as the member's own
statements.

A store that does not push changes, such as object storage and most databases, is read each
--interval, once for each election. The page shows the cost of these reads.

The object of --json has time, event ("serving") and url.`

const examplesDashboard = `  tenure dashboard --store nats://host:4222/ELECTIONS
  tenure dashboard --store nats://host:4222/ELECTIONS --store postgres://user@host/db --listen 0.0.0.0:8420 --listen-token-file token
  tenure dashboard --store nats://host:4222/ELECTIONS --history /var/lib/tenure/history --allow-actions --listen-token-file token
  tenure dashboard --store s3://bucket/elections --election nightly --interval 1m`

// dashboardFlags are the flags of dashboard.
type dashboardFlags struct {
	where     cli.StoreFlags
	web       web.Flags
	elections []string
	interval  time.Duration
	members   memberFlags
	history   string
	actions   bool
	logURL    string
	runbook   string
	json      bool

	named  func(flag string) string // the source of a flag, for errors
	places []stores.Place
	at     *web.Settings
}

func newDashboard() *cobra.Command {
	var d dashboardFlags
	c := command("dashboard --store URL", "Show all elections in a browser", aboutDashboard, examplesDashboard, d.run)
	f := c.Flags()
	d.where = cli.StoreFlags{Several: true}
	d.where.Define(f)
	_ = f.MarkHidden("connect-timeout") // the page waits without limit, and says so
	f.StringArrayVar(&d.elections, "election", nil, "name of an election, the key in the store; may be given more than once (default all that the store lists)")
	cli.Group(f, cli.GroupElection)
	// each browser needs one connection for the stream of changes, and a few more at times
	d.web = web.Flags{Name: "listen", Address: "127.0.0.1:8420", Connections: 512}
	d.web.Define(f, "the page")
	cli.Group(f, "Page")
	f.DurationVar(&d.interval, "interval", 15*time.Second, "time between two reads of an election where the store does not push changes, 1s to 1h")
	cli.Group(f, cli.GroupElection)
	d.members.define(f)
	cli.Group(f, "Members")
	f.StringVar(&d.history, "history", "", "file that keeps the terms of leaders, so that the page shows them after a restart (default none)")
	f.BoolVar(&d.actions, "allow-actions", false, "let the page hand over leadership and reset records; needs --listen-token-file")
	f.StringVar(&d.logURL, "log-url", "", "link to the logs of an election; {store}, {election}, {leader} and {term} are replaced")
	f.StringVar(&d.runbook, "runbook-url", "", "link to the runbook of an election, with the same words")
	cli.Group(f, "Page")
	f.BoolVar(&d.json, "json", false, "the line with the URL of the page, and the log, as JSON objects")
	cli.Group(f, cli.GroupOutput)
	return c
}

func (d *dashboardFlags) resolve(c *cobra.Command) error {
	f := c.Flags()
	from, err := cli.Fill(f, os.Getenv, nil)
	if err != nil {
		return err
	}
	d.named = from.Named
	if d.places, err = d.where.Places(f, from, os.Getenv); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, p := range d.places {
		if names[p.String()] {
			return fault.OfUsage(fmt.Errorf("%s has %v twice", from.Named("store"), p))
		}
		names[p.String()] = true
	}
	if err := d.members.resolve(from.Named, len(d.places)); err != nil {
		return err
	}
	if d.interval < time.Second || d.interval > time.Hour {
		return fault.OfValue(fmt.Errorf("%s is %v; it must be from 1s to 1h0m0s", from.Named("interval"), d.interval))
	}
	if d.at, err = d.web.Settings(from.Named); err == nil && d.at == nil {
		return fault.OfUsage(fmt.Errorf("%s is empty", from.Named("listen")))
	}
	for flag, link := range map[string]string{"log-url": d.logURL, "runbook-url": d.runbook} {
		if err == nil && link != "" && !strings.HasPrefix(link, "https://") && !strings.HasPrefix(link, "http://") {
			err = fault.OfValue(fault.New("give a URL such as https://logs.example/?q={election}", "%s %s: is no http or https URL", from.Named(flag), fault.Quote(link)))
		}
	}
	if err == nil && d.actions && !d.at.HasToken() {
		err = fault.OfValue(fault.New("write a secret word into a file, and name the file with --listen-token-file; browsers ask for the word as a password",
			"%s needs --listen-token-file", from.Named("allow-actions")))
	}
	return err
}

func (d *dashboardFlags) run(c *cobra.Command) error {
	if err := d.resolve(c); err != nil {
		return err
	}
	var connections connections
	defer connections.close()
	log := cli.NewLogger(c.ErrOrStderr(), slog.LevelInfo, d.json)
	cfg := dashboard.Config{Version: cli.Version(), Actions: d.actions, History: d.history, LogURL: d.logURL, RunbookURL: d.runbook, Logger: log}
	for _, p := range d.places {
		cfg.Sources = append(cfg.Sources, d.source(p, &connections, log))
	}
	board, err := dashboard.New(cfg)
	if why := errors.Unwrap(err); why != nil { // from --history
		return fault.OfValue(fmt.Errorf("%s %s: %w", d.named("history"), d.history, why))
	}
	if err != nil {
		return err
	}
	server, err := d.at.Open(board, log)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	if !server.Loopback && !d.at.HasToken() {
		log.Warn("every client that reaches the address sees all elections", "remedy", "give --listen-token-file")
	}
	sayServing(c, d.json, "dashboard", server.URL+"/")
	board.Run(c.Context())
	return nil
}

// sayServing prints the address of a server.
func sayServing(c *cobra.Command, asJSON bool, name, url string) {
	if !asJSON {
		fmt.Fprintf(c.OutOrStdout(), "The %s is at %s\nCtrl-C ends it.\n", name, url)
		return
	}
	output.JSON(c.OutOrStdout(), struct {
		Time  time.Time `json:"time"`
		Event string    `json:"event"`
		URL   string    `json:"url"`
	}{time.Now().UTC(), "serving", url})
}

// source returns a place for the dashboard. The dashboard connects in the background, so that the
// page can show errors.
func (d *dashboardFlags) source(p stores.Place, all *connections, log *slog.Logger) dashboard.Source {
	key := "dashboard" // any key will do for the first read
	if len(d.elections) > 0 {
		key = d.elections[0]
	}
	prices, _ := p.Prices()
	return dashboard.Source{
		Name: p.String(), Elections: d.elections, Interval: d.interval, Price: prices.Read,
		Members: d.members.addresses, MembersClient: d.members.client(),
		Connect: func(ctx context.Context, waiting func(error)) (driver.Store, error) {
			how := stores.Options{Client: "tenure dashboard", Logger: log, OnConnection: logConnection(log, p)}
			waiting = logged(log, p, waiting)
			for {
				s, err := stores.Connect(ctx, p, key, how, stores.Patience{Limit: stores.Forever, Told: func(err error) { waiting(explained(err)) }})
				if err == nil {
					all.add(s)
					return s.Driver, nil
				}
				if ctx.Err() != nil {
					return nil, err
				}
				waiting(explained(err))
				select {
				case <-time.After(againAfter):
				case <-ctx.Done():
				}
			}
		},
	}
}

// logged also logs why a store cannot be reached, one cause ever less often.
func logged(log *slog.Logger, p stores.Place, waiting func(error)) func(error) {
	var limit loglimit.Limiter
	begun := time.Now()
	return func(err error) {
		waiting(err)
		if times := limit.Admit(loglimit.Cause(err.Error(), ""), time.Since(begun)); times > 0 {
			log.Warn("the store cannot be reached", "store", p.String(), "cause", err)
		}
	}
}

// logConnection logs that the connection to a store is lost, or back.
func logConnection(log *slog.Logger, p stores.Place) func(up bool, err error) {
	return func(up bool, err error) {
		switch {
		case up:
			log.Info("the connection is back", "store", p.String())
		case err != nil:
			log.Warn("the connection is lost", "store", p.String(), "cause", fault.Masked(err.Error()))
		default:
			log.Warn("the connection is lost", "store", p.String())
		}
	}
}

// againAfter is the time before another attempt after an error that an operator has to fix.
const againAfter = 10 * time.Second

// connections are the open stores.
type connections struct {
	mu  sync.Mutex
	all []*stores.Store
}

func (c *connections) add(s *stores.Store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, s)
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		_ = s.Close()
	}
}

// explained appends the hint to the error: the page has one line for both.
func explained(err error) error {
	text := fault.Masked(err.Error())
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	return errors.New(text)
}
