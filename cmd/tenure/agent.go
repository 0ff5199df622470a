package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/agent"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/metrics"
)

const aboutAgent = `Takes part in elections for programs on this machine, or in this pod, that are written in any
language. They speak HTTP with it: docs/agent.md describes the interface.

A program begins a campaign and sends heartbeats from the loop that does its work. When a heartbeat
is missing, the agent renews the lease no more and does not release it: it runs out. An agent cannot
stop a program that acts without asking. Use tenure run where that is needed.

With unix:PATH only processes of the same user, and of root, can connect. An address on loopback is
open to all users of the machine: give --listen-token-file. On other addresses, campaigns are
refused, since a program on another machine has another clock; load balancers may ask
/leader/ELECTION and /follower/ELECTION, and observers /v1/elections/ELECTION.

When agent receives SIGTERM or SIGINT, it asks the programs that lead to finish, and waits for them
for --finish-within.

The object of --json has time, event ("serving") and url.`

const examplesAgent = `  tenure agent --store nats://host:4222/ELECTIONS --listen unix:/run/tenure/agent.sock
  tenure agent --store nats://host:4222/ELECTIONS --listen 8421 --listen-token-file token`

// agentFlags are the flags of agent.
type agentFlags struct {
	where                           cli.StoreFlags
	web                             web.Flags
	health                          healthFlags
	hook                            hookFlags
	lease, stopWithin, finishWithin time.Duration
	campaigns                       int
	stateFile, sidecar              string
	metrics                         web.Flags
	json                            bool

	place stores.Place
	at    *web.Settings
	// scraped is of the server of metrics; nil: there is none.
	scraped *web.Settings
	named   func(flag string) string
}

func newAgent() *cobra.Command {
	var a agentFlags
	c := command("agent --store URL [flags]", "Elect for programs in any language, over HTTP", aboutAgent, examplesAgent, a.run)
	f := c.Flags()
	a.where = cli.StoreFlags{Creates: true}
	a.where.Define(f)
	a.web = web.Flags{Name: "listen", Address: "unix:/run/tenure/agent.sock", Unix: true, Problems: true}
	a.web.Define(f, "the interface")
	cli.Group(f, "Interface")
	f.IntVar(&a.campaigns, "max-campaigns", 2000, "how many campaigns may go on at a time")
	f.StringVar(&a.sidecar, "sidecar", "", "election whose leader GET / names, as {\"name\": ID}, for programs made for the leader-elector sidecar of Kubernetes")
	f.StringVar(&a.stateFile, "state-file", "", "file with a line for each campaign: election, leading, finishing or following, token and id, separated by tabs; it is replaced at each change, and grants nothing")
	cli.Group(f, "Interface")
	a.metrics = web.Flags{Name: "metrics"}
	a.metrics.Define(f, "metrics for Prometheus")
	cli.Group(f, "Metrics")
	f.DurationVar(&a.lease, "lease", 15*time.Second, "how long a leader may be silent before another takes over, unless a campaign has its own")
	f.DurationVar(&a.stopWithin, "stop-within", 0, "part of the lease that a program needs to stop when the lease is lost, unless a campaign has its own")
	f.DurationVar(&a.finishWithin, "finish-within", 10*time.Second, "how long a program may take to finish when it is asked to, unless a campaign has its own")
	cli.Group(f, cli.GroupLease)
	a.health.define(f)
	_ = f.MarkHidden("check-floor") // resolve refuses it
	a.hook.define(f)
	f.BoolVar(&a.json, "json", false, "the line with the address, and the log, as JSON objects")
	cli.Group(f, cli.GroupOutput)
	return c
}

func (a *agentFlags) resolve(c *cobra.Command) error {
	f := c.Flags()
	from, err := cli.Fill(f, os.Getenv, nil)
	if err != nil {
		return err
	}
	a.named = func(flag string) string {
		if flag == "election" { // the library's word for the sidecar's
			flag = "sidecar"
		}
		return from.Named(flag)
	}
	if a.place, err = a.where.Place(f, from, os.Getenv); err != nil {
		return err
	}
	if a.campaigns < 1 || a.campaigns > 100_000 {
		return fault.OfValue(fmt.Errorf("%s is %d; it must be from 1 to 100000", from.Named("max-campaigns"), a.campaigns))
	}
	if a.health.floor {
		return fault.OfUsage(fmt.Errorf("%s is for tenure run: campaigns of an agent have priorities of their own", from.Named("check-floor")))
	}
	if err := a.health.check(from); err != nil {
		return fault.OfValue(err)
	}
	if a.scraped, err = a.metrics.Settings(from.Named); err != nil {
		return err
	}
	a.web.Connections = 2*a.campaigns + mostWaiting + 100 // two for each campaign
	if a.at, err = a.web.Settings(from.Named); err == nil && a.at == nil {
		return fault.OfUsage(errors.New(from.Named("listen") + " is empty"))
	}
	return err
}

// mostWaiting is how many clients may wait for news of elections at a time.
const mostWaiting = 500

// agentCheck is a name for the first read of the store: any key will do.
const agentCheck = "agent"

func (a *agentFlags) run(c *cobra.Command) error {
	if err := a.resolve(c); err != nil {
		return err
	}
	log := cli.NewLogger(c.ErrOrStderr(), slog.LevelInfo, a.json)
	s, err := a.where.Connect(c.Context(), a.place, agentCheck, stores.Options{Client: "tenure agent", Lease: a.lease, Logger: log},
		func(err error) { log.Warn("the store cannot be reached yet", "cause", err) })
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	set := metrics.NewSummary()
	hear, end := a.hook.open(log, nil)
	defer end()
	all, err := agent.New(s.Driver, agent.Config{MaxCampaigns: a.campaigns, MaxWaiting: mostWaiting, Sidecar: a.sidecar, Election: tenure.Config{
		Lease: a.lease, StopWithin: a.stopWithin, FinishWithin: a.finishWithin, Logger: log, Metrics: set, OnEvent: hear,
	}})
	if err != nil {
		return fault.OfValue(cli.Flags{Named: a.named}.InFlags(err))
	}
	defer a.health.begin(log, nil, all.SetEligible, nil)()
	endState, err := a.keepState(all, log)
	if err != nil {
		return err
	}
	defer endState()
	if a.scraped != nil {
		scraped, err := a.scraped.Open(scrapes(set), log)
		if err != nil {
			return err
		}
		defer func() { _ = scraped.Close() }()
		log.Info("metrics are served", "url", scraped.URL+"/metrics")
	}
	server, err := a.at.Open(a.pages(all), log)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	sayServing(c, a.json, "agent", server.URL)
	<-c.Context().Done()
	const release = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), a.finishWithin+release)
	defer cancel()
	all.Close(ctx)
	return nil
}

// pages adds the page that tells a supervisor that the process is there. It is no http.ServeMux,
// which redirects paths that the agent refuses.
func (a *agentFlags) pages(all *agent.Agent) http.Handler {
	campaigns := all.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			fmt.Fprintln(w, "ok")
			return
		}
		campaigns.ServeHTTP(w, r)
	})
}
