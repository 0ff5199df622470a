package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/demo"
)

// demoFlags are the settings of the command line or the environment.
type demoFlags struct {
	demo.Options
	where cli.StoreFlags
	peers peers.Flags
}

// The values of --store with which the demo starts a server of object storage or brokers of Kafka.
const (
	embeddedS3    = "s3-embedded:"
	embeddedKafka = "kafka-embedded:"
)

func (d *demoFlags) define(f *pflag.FlagSet) {
	f.SortFlags = false
	f.IntVar(&d.Candidates, "candidates", 5, "how many candidates")
	f.DurationVar(&d.CrashEvery, "crash-every", 0,
		"time from one disturbance of the leader to the next; 0: never (default two and a half leases)")
	f.DurationVar(&d.For, "for", 0, "end after this time (default: run until Ctrl-C)")
	cli.Group(f, "Demo")
	f.StringVar(&d.Election, "election", "demo", "name of the election, the key in the bucket")
	cli.Group(f, cli.GroupElection)
	f.DurationVar(&d.Lease, "lease", 0,
		"how long a leader may be silent before another takes over (default 2s, or 5s on object storage that the demo did not start)")
	f.DurationVar(&d.Renew, "renew", 0, "time from one renewal to the next (default a third of the lease)")
	f.DurationVar(&d.Splay, "splay", 0, "maximum random delay before a candidate's first claim")
	cli.Group(f, cli.GroupLease)
	d.where = cli.StoreFlags{Creates: true, Bucket: demo.Bucket, Serves: embeddedS3 + " starts a server of object storage, " +
		embeddedKafka + " brokers of Kafka"}
	d.where.Define(f)
	f.BoolVar(&d.Inspect, "inspect", false,
		"test the store first, and refuse it if it is unsafe; on object storage that takes about 1,130 requests, and "+
			"detects servers that ignore conditions")
	cli.Group(f, cli.GroupStore)
	d.peers.Define(f)
	cli.Group(f, cli.GroupPeers)
	f.BoolVar(&d.JSON, "json", false, "one JSON object per line")
	f.BoolVar(&d.Plain, "plain", false, "line by line, also on a terminal")
	f.BoolVarP(&d.Verbose, "verbose", "v", false, "line by line, and also what each follower sees (--json always has that)")
	cli.Group(f, cli.GroupOutput)
}

// shortNames are more variables of the environment that set flags.
var shortNames = []cli.Variable{
	{Name: "KEY", Flag: "election", Value: asIs}, {Name: "WORKERS", Flag: "candidates", Value: asIs},
	{Name: "CONTEXT", Flag: "context", Value: asIs}, {Name: "NOSPLAY", Flag: "splay", Value: noSplay},
}

func asIs(value string) string { return value }

func noSplay(value string) string {
	if value == "1" {
		return "0"
	}
	return ""
}

func (d *demoFlags) options(f *pflag.FlagSet, env func(string) string) (demo.Options, error) {
	from, err := cli.Fill(f, env, shortNames)
	if err != nil {
		return demo.Options{}, err
	}
	o := d.Options
	o.Flags = cli.Flags{Named: from.Named, Given: f.Changed}
	o.Create, o.Await.Limit = d.where.Create, d.where.Timeout
	if err := d.place(f, &o, from, env); err != nil {
		return o, fault.OfValue(err)
	}
	if o.Peers, err = d.peers.Settings(from.Named); err != nil {
		return o, fault.OfValue(err)
	}
	if o.Peers != nil && !o.Polled() {
		return o, fault.OfValue(fault.New("leave it out, or give a store that does not push changes, such as --store s3://... or --store "+embeddedS3,
			"%s: %s pushes changes and needs no peers", from.Named("peer"), o.StoreName()))
	}
	return d.withDefaults(f, o), nil
}

// place sets the running server in the options, or which server to start.
func (d *demoFlags) place(f *pflag.FlagSet, o *demo.Options, from cli.Sources, env func(string) string) (err error) {
	url, err := d.where.URL(f, from)
	switch {
	case err != nil:
		return err
	case url == embeddedS3:
		o.EmbeddedS3 = true
	case strings.HasPrefix(url, embeddedKafka):
		if o.EmbeddedKafka, err = kafkatopic.ParseEmbedded(url, demo.KafkaTopic); err != nil {
			err = stores.Given(from.Named(cli.FlagStore), url, err)
		}
	default:
		o.Place, err = d.where.Place(f, from, env)
		return orNoStore(url, err)
	}
	if err != nil {
		return err
	}
	return d.where.WithoutProperties(f, from)
}

// orNoStore changes the hint for memory: to name the demo's own server.
func orNoStore(url string, err error) error {
	var f *fault.Error
	if !strings.HasPrefix(url, "memory:") || !errors.As(err, &f) {
		return err
	}
	other := *f
	other.Hint = "leave it out to have a server started for the demo, or " + f.Hint
	return &other
}

// withDefaults fills in the defaults that depend on the store and on other flags.
func (d *demoFlags) withDefaults(f *pflag.FlagSet, o demo.Options) demo.Options {
	if !f.Changed("lease") {
		o.Lease = 2 * time.Second
		if !o.Place.IsZero() {
			o.Lease = o.Place.Description().DemoLease
		}
	}
	if !f.Changed("crash-every") {
		o.CrashEvery = o.Lease * 5 / 2
	}
	return o
}
