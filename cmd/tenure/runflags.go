//go:build unix

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/cmd/tenure/internal/wrap"
)

// runFlags are the settings of run.
type runFlags struct {
	where    cli.StoreFlags
	peers    peers.Flags
	web      web.Flags
	election string
	id       string

	lease, renew, stopWithin, finishWithin time.Duration
	splay                                  time.Duration
	priority                               int
	once, inspect, contain                 bool

	restart, format, loudness string
	json                      bool

	// The results of resolve.
	place   stores.Place
	members *peers.Settings
	// overridden are variables that the command line has replaced. They would mislead the command.
	overridden []string
	scraped    *web.Settings // of the server of metrics; nil: there is none
	level      slog.Level
}

func (r *runFlags) define(f *pflag.FlagSet) {
	f.SortFlags = false
	f.SetInterspersed(false) // the arguments after the command belong to the command
	r.where = cli.StoreFlags{Creates: true}
	r.where.Define(f)
	f.StringVar(&r.election, "election", "", "name of the election, the key in the store")
	f.StringVar(&r.id, "id", "", "name of this candidate, for people, not empty (default host name, process id and five random characters)")
	f.IntVar(&r.priority, "priority", 0, "-1000000 to 1000000: a candidate with a higher priority than the leader's, healthy for two leases, asks the leader to hand over")
	cli.Group(f, cli.GroupElection)
	f.DurationVar(&r.lease, "lease", 15*time.Second, "how long a leader may be silent before another takes over")
	f.DurationVar(&r.renew, "renew", 0, "time from one renewal to the next (default a third of the lease)")
	f.DurationVar(&r.stopWithin, "stop-within", 0,
		"when the lease is lost, the time from SIGTERM until SIGKILL has ended the command; this time is part of the lease (default a fifth of the lease, at most 5s; at least 100ms)")
	f.DurationVar(&r.finishWithin, "finish-within", 10*time.Second,
		"how long the command may take to finish when it is asked to; until then the lease is renewed")
	f.DurationVar(&r.splay, "splay", 0, "maximum random delay before the first claim")
	cli.Group(f, cli.GroupLease)
	f.BoolVar(&r.once, "once", false, fmt.Sprintf("exit with %d when leadership is lost or handed over, and do not campaign again; --restart applies until then", wrap.CodeLost))
	f.StringVar(&r.restart, "restart", string(wrap.RestartNever),
		"never, on-failure or always: run the command again when it ends by itself, after a pause, without giving up leadership")
	f.BoolVar(&r.contain, "pid-namespace", false,
		"run the command in a PID namespace of its own, which the kernel ends when tenure and its guard are killed (Linux)")
	cli.Group(f, "Command")
	f.BoolVar(&r.inspect, "inspect", false, "test the store first, refuse it if it is unsafe, and warn of lesser findings; on object storage that takes about 1,130 requests")
	cli.Group(f, cli.GroupStore)
	r.peers.Define(f)
	cli.Group(f, cli.GroupPeers)
	r.web = web.Flags{Name: "metrics"}
	r.web.Define(f, "metrics for Prometheus")
	cli.Group(f, "Metrics")
	f.StringVar(&r.format, "log-format", "text", "text or json, on standard error")
	f.StringVar(&r.loudness, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&r.json, "json", false, "the same as --log-format json")
	cli.Group(f, cli.GroupOutput)
}

// resolve checks all settings before anything is started, and sets the fields that follow from
// them.
func (r *runFlags) resolve(f *pflag.FlagSet, env func(string) string) error {
	from, err := cli.Fill(f, env, nil)
	if err != nil {
		return err
	}
	r.overridden = from.Overridden(f)
	if !f.Changed("stop-within") {
		r.stopWithin = min(r.lease/5, 5*time.Second)
	}
	if r.json {
		r.format = "json"
	}
	if err := r.where.Require(f, "election"); err != nil {
		return err
	}
	if r.place, err = r.where.Place(f, from, env); err != nil {
		return err
	}
	if r.election == "" {
		return fault.OfUsage(errors.New("--election is missing"))
	}
	if r.members, err = r.peers.Settings(from.Named); err != nil {
		return err
	}
	if r.scraped, err = r.web.Settings(from.Named); err != nil {
		return err
	}
	if r.members != nil && r.place.Pushes() {
		return fault.New("leave it out", "%s: %s pushes changes and needs no peers", from.Named("peer"), r.place.Kind())
	}
	return errors.Join(r.checkWords(from), r.checkElection(f, from))
}

func (r *runFlags) checkWords(from cli.Sources) error {
	if !slices.Contains(wrap.Restarts, wrap.Restart(r.restart)) {
		return fmt.Errorf("%s is %q; it must be never, on-failure or always", from.Named("restart"), r.restart)
	}
	if r.format != "text" && r.format != "json" {
		return fmt.Errorf("%s is %q; it must be text or json", from.Named("log-format"), r.format)
	}
	if err := r.level.UnmarshalText([]byte(r.loudness)); err != nil {
		return fmt.Errorf("%s is %q; it must be debug, info, warn or error", from.Named("log-level"), r.loudness)
	}
	return nil
}

// checkElection checks the settings of the election. A given --stop-within must leave time to kill
// the command.
func (r *runFlags) checkElection(f *pflag.FlagSet, from cli.Sources) error {
	if f.Changed("stop-within") && r.stopWithin < wrap.LeastStopWithin {
		return fmt.Errorf("%s is %v; it must be at least %v", from.Named("stop-within"), r.stopWithin, wrap.LeastStopWithin)
	}
	limits, err := r.place.Limits()
	if err != nil {
		return err
	}
	return cli.Flags{Named: from.Named, Given: f.Changed}.Check(limits, r.election, r.config())
}

func (r *runFlags) config() tenure.Config {
	return tenure.Config{
		ID: r.id, Priority: r.priority, Lease: r.lease, StopWithin: r.stopWithin, FinishWithin: r.finishWithin,
		Tuning: tenure.Tuning{
			Renew: r.renew, Splay: r.splay,
			// constant: a guard that fails now and then does not make the pauses longer
			Backoff: func(int) time.Duration { return r.lease },
		},
	}
}
