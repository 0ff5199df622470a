package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/cmd/tenure/internal/health"
	"github.com/tenure-go/tenure/cmd/tenure/internal/hook"
	"github.com/tenure-go/tenure/cmd/tenure/internal/shell"
)

// healthFlags are the flags that let a check decide whether candidates may lead.
type healthFlags struct {
	line, url string
	interval  time.Duration
	floor     bool
}

func (h *healthFlags) define(f *pflag.FlagSet) {
	f.StringVar(&h.line, "check", "", fmt.Sprintf("line for the shell that ends with 0 while this candidate is fit to lead; it is unfit until the first check has passed, and after %d failures until %d checks have passed", health.Fall, health.Rise))
	f.StringVar(&h.url, "check-http", "", "URL that answers with 200 to 299 while this candidate is fit to lead, in place of --check")
	f.DurationVar(&h.interval, "check-interval", 5*time.Second, "time from one check to the next, at least 100ms; a check that takes longer than four fifths of it is killed and has failed")
	f.BoolVar(&h.floor, "check-floor", false, "an unfit leader goes on until another candidate takes over, and any other unfit candidate leads once none has led for a lease")
	cli.Group(f, "Health")
}

func (h *healthFlags) given() bool { return h.line != "" || h.url != "" }

// leastInterval is the shortest time between two checks.
const leastInterval = 100 * time.Millisecond

func (h *healthFlags) check(from cli.Sources) error {
	if h.line != "" && h.url != "" {
		return fmt.Errorf("%s must not be given with --check", from.Named("check-http"))
	}
	if h.interval < leastInterval {
		return fmt.Errorf("%s is %v; it must be at least %v", from.Named("check-interval"), h.interval, leastInterval)
	}
	if h.floor && !h.given() {
		return fmt.Errorf("%s needs --check or --check-http", from.Named("check-floor"))
	}
	u, err := url.Parse(h.url)
	switch named := from.Named("check-http"); {
	case h.url == "":
	case err != nil: // its text may have a password
		return fmt.Errorf("%s is no URL; it must be like http://localhost:8080/health", named)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%s is %q; it must be an http or https URL", named, u.Redacted())
	}
	return nil
}

// begin makes the candidates ineligible until the first check has passed, and checks from then on,
// until the returned function is called. Without flags it does nothing. Unset are variables that
// the line does not get. A floor, if there is one, decides in place of setEligible.
func (h *healthFlags) begin(log *slog.Logger, unset []string, setEligible func(bool), floor *health.Floor) (stop func()) {
	if !h.given() {
		return func() {}
	}
	look, unfit := func() {}, "this candidate steps aside, and does not lead"
	if floor != nil {
		setEligible, look, unfit = floor.SetFit, floor.Look, "this candidate leads only while no other one does"
	}
	setEligible(false)
	check := health.HTTP(h.url)
	if h.line != "" {
		check = func(ctx context.Context) error { return shell.Run(ctx, h.line, guarded.Environment(unset)) }
	}
	c := &health.Checker{
		Check: check, Interval: h.interval,
		Failed: func(cause error) {
			log.Debug("a health check failed", "cause", cause)
			look()
		},
		Changed: func(cause error) {
			if cause == nil {
				log.Info("the health check passes: this candidate may lead")
			} else {
				log.Warn("the health check fails: "+unfit, "cause", cause)
			}
			setEligible(cause == nil)
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	log.Info("this candidate does not lead before its first health check has passed")
	return func() {
		cancel()
		<-done
	}
}

// hookFlags has the line of --on-change, which runs after each change of a candidate's state.
type hookFlags struct{ line string }

func (h *hookFlags) define(f *pflag.FlagSet) {
	f.StringVar(&h.line, "on-change", "", fmt.Sprintf("line for the shell after each change of state, with TENURE_STATE (candidate, leader, leaving, lost, released), TENURE_LEADER, TENURE_TOKEN, TENURE_ELECTION and TENURE_ID; one at a time, states in between are left out; killed after %v", hook.Limit))
	cli.Group(f, "Health")
}

// open returns a function for all events, and one that ends the hook after them. Without the flag,
// hear is nil.
func (h *hookFlags) open(log *slog.Logger, unset []string) (hear func(tenure.Event), end func()) {
	if h.line == "" {
		return nil, func() {}
	}
	all := hook.New(func(ctx context.Context, s hook.State) error {
		return shell.Run(ctx, h.line, guarded.Environment(unset, s.Variables()...))
	}, log)
	return all.Hear, all.Close
}
