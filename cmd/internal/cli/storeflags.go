package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
	"github.com/tenure-go/tenure/cmd/tenure/internal/stores"
)

// storeFlags name a store and say how to come to it. Their zero value is for a command that uses one that is there; what
// differs is set before define.
type storeFlags struct {
	// creates: the command can make the bucket or topic.
	creates bool
	// serves says in the help which servers the command starts itself. Then no store need be named, and one that is gets no
	// patience unless that is asked for.
	serves string
	// bucket is that of a context that is given without one.
	bucket string

	store, context string
	properties     string
	timeout        time.Duration
	create         bool
}

// The names of the flags.
const (
	flagStore      = "store"
	flagContext    = "context"
	flagProperties = "kafka-properties"
	flagTimeout    = "connect-timeout"
)

// usualBucket is the one in a context unless another is named, as in the examples of URLs.
const usualBucket = "ELECTIONS"

// usualTimeout lets a server be restarted meanwhile.
const usualTimeout = 30 * time.Second

func (s *storeFlags) define(f *pflag.FlagSet) {
	store, timeout := "", usualTimeout
	if s.serves != "" {
		store, timeout = "; "+s.serves, 0
	}
	if s.bucket == "" {
		s.bucket = usualBucket
	}
	f.StringVar(&s.store, flagStore, "", "bucket or topic on a running server: nats://[user:password@]host[:port]/BUCKET[?migrating=true|pristine=true], tls://..., "+
		"s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME], or kafka://host[:port],.../TOPIC[?mode=neli&group=NAME]"+store)
	f.StringVar(&s.context, flagContext, "",
		"context of the nats command, NAME[/BUCKET], which keeps passwords off the command line; the bucket is "+s.bucket+" by default")
	f.StringVar(&s.properties, flagProperties, "",
		"file with properties of Kafka's clients (TLS, users), such as Kafka's own tools take with --command-config")
	f.DurationVar(&s.timeout, flagTimeout, timeout, "how long to wait for servers that cannot be reached; 0: not at all")
	if s.creates {
		f.BoolVar(&s.create, "create", false, "make the bucket or topic if it is missing")
	}
}

// place is the one that the flags, or the variables in their stead, name. It is zero only if the command starts a server
// itself and no other is named. Its errors are for people and show no credentials.
func (s *storeFlags) place(f *pflag.FlagSet, from sources, env func(string) string) (stores.Place, error) {
	p, err := s.named(f, from, env)
	return p, fault.OfValue(err)
}

func (s *storeFlags) named(f *pflag.FlagSet, from sources, env func(string) string) (stores.Place, error) {
	url, err := s.url(f, from)
	if err != nil {
		return stores.Place{}, err
	}
	p := stores.Place{}
	switch {
	case s.inContext(f, from):
		p, err = stores.ParseContext(from.named(flagContext), s.context, s.bucket)
	case url != "" || f.Changed(flagStore):
		p, err = stores.Parse(from.named(flagStore), url)
	case s.serves == "":
		return p, stores.Missing("--" + flagStore)
	}
	if err != nil {
		return p, err
	}
	if p.Kafka == nil {
		return p, s.withoutProperties(f, from)
	}
	return p.With(stores.KafkaSettings{Setting: from.named(flagProperties), File: s.properties, Env: env})
}

// url is that of --store, empty where --context decides.
func (s *storeFlags) url(f *pflag.FlagSet, from sources) (string, error) {
	switch {
	case from.byHand(f, flagStore) && from.byHand(f, flagContext):
		return "", fault.OfUsage(errors.New("--store and --context both name a server"))
	case s.inContext(f, from):
		return "", nil
	}
	return s.store, nil
}

// inContext: what the command line says decides before variables of the environment, and of those the URL.
func (s *storeFlags) inContext(f *pflag.FlagSet, from sources) bool {
	return s.context != "" && (from.byHand(f, flagContext) || s.store == "")
}

// withoutProperties refuses the flag that is for Kafka alone. Variables may be there for other commands.
func (s *storeFlags) withoutProperties(f *pflag.FlagSet, from sources) error {
	if from.byHand(f, flagProperties) {
		return fault.OfUsage(errors.New("--" + flagProperties + " needs --store kafka://..."))
	}
	return nil
}

// waiting says once, for people, what is waited for.
func (s *storeFlags) waiting(errs io.Writer) func(error) {
	var once sync.Once
	return func(err error) {
		once.Do(func() { fault.Tell(errs, "waiting up to "+s.timeout.String(), err) })
	}
}

// connect opens the store and reads the election's record. While the servers cannot be reached it tries again, for
// --connect-timeout, and told hears of that once; what waiting cannot mend is returned at once. The errors are for people, but
// for the cause of ctx if that has ended.
func (s *storeFlags) connect(
	ctx context.Context, p stores.Place, election string, o stores.Options, told func(error),
) (*stores.Store, error) {
	o.Create = s.create
	var once sync.Once
	return stores.Connect(ctx, p, election, o, stores.Patience{Limit: s.timeout, Told: func(err error) {
		once.Do(func() { told(err) })
	}})
}
