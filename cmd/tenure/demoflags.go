package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/tenure/internal/demo"
	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
	"github.com/tenure-go/tenure/cmd/tenure/internal/stores"
)

// demoFlags are what can be set on the command line, or by the environment.
type demoFlags struct {
	demo.Options
	store, context string
	contextSetting string
}

func (d *demoFlags) define(f *pflag.FlagSet) {
	f.SortFlags = false
	f.IntVar(&d.Candidates, "candidates", 5, "how many candidates")
	f.DurationVar(&d.Lease, "lease", 2*time.Second, "how long a leader may be silent before another takes over")
	f.DurationVar(&d.Renew, "renew", 0, "time from one renewal to the next (default a third of the lease)")
	f.DurationVar(&d.CrashEvery, "crash-every", 5*time.Second, "time from one disturbance of the leader to the next; 0: never")
	f.DurationVar(&d.For, "for", 0, "end after this time (default on Ctrl-C)")
	f.StringVar(&d.store, "store", "", "bucket on a running server: nats://[user:password@]host[:port]/BUCKET or tls://...")
	f.StringVar(&d.context, "context", "",
		"context of the nats command, which keeps passwords off the command line; the bucket is "+demo.Bucket)
	f.BoolVar(&d.Create, "create", false, "make the bucket if it is missing")
	f.StringVar(&d.Election, "election", "demo", "name of the election, the key in the bucket")
	f.DurationVar(&d.Splay, "splay", 0, "most of a random delay before a candidate's first claim")
	f.BoolVar(&d.JSON, "json", false, "one JSON object per line")
	f.BoolVarP(&d.Verbose, "verbose", "v", false, "also tell what each follower sees (--json always does)")
}

// variables of the environment and the flags that they stand for.
var variables = []struct{ name, flag string }{
	{"KEY", "election"}, {"WORKERS", "candidates"}, {"CONTEXT", "context"},
}

// fill takes from the environment what no flag has set.
func (d *demoFlags) fill(f *pflag.FlagSet, env func(string) string) error {
	d.contextSetting = "--context"
	for _, v := range variables {
		value := env(v.name)
		if value == "" || f.Changed(v.flag) || v.flag == "context" && f.Changed("store") {
			continue
		}
		if err := f.Set(v.flag, value); err != nil {
			return fault.New("unset it, or set it to what --"+v.flag+" takes",
				"%s in the environment is %q, which is no number", v.name, value)
		}
		if v.flag == "context" {
			d.contextSetting = v.name
		}
	}
	if env("NOSPLAY") == "1" && !f.Changed("splay") {
		d.Splay = 0
	}
	return nil
}

func (d *demoFlags) options(f *pflag.FlagSet, env func(string) string) (demo.Options, error) {
	if f.Changed("store") && f.Changed("context") {
		return demo.Options{}, fault.OfUsage(errors.New("--store and --context both name a server"))
	}
	if err := d.fill(f, env); err != nil {
		return demo.Options{}, err
	}
	o := d.Options
	var err error
	switch {
	case f.Changed("store"):
		o.Place, err = stores.Parse("--store", d.store)
	case d.context != "":
		o.Place = stores.InContext(d.contextSetting, d.context, demo.Bucket)
	}
	return o, err
}
