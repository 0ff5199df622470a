package cli

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// StoreFlags are the flags that name a store and the way to it. The zero value is for a command
// that uses an existing store; set differences before Define.
type StoreFlags struct {
	// Creates: the command can make the bucket, topic or table.
	Creates bool
	// Serves is the help text about servers that the command starts itself. If it is set, --store
	// is optional and --connect-timeout is 0 by default.
	Serves string
	// Bucket is the bucket for a --context that names none.
	Bucket string
	// Several: --store may be given more than once. Places returns all.
	Several bool

	store, context string
	stores         []string
	properties     string

	// Timeout and Create are the given values.
	Timeout time.Duration
	Create  bool
}

// The names of the flags.
const (
	FlagStore      = "store"
	FlagContext    = "context"
	flagProperties = "kafka-properties"
	flagTimeout    = "connect-timeout"
)

// usualBucket is the default of StoreFlags.Bucket, the same as in the examples of URLs.
const usualBucket = "ELECTIONS"

// UsualTimeout is the default of --connect-timeout: long enough to restart a server.
const UsualTimeout = 30 * time.Second

// Define adds the flags to those of a command.
func (s *StoreFlags) Define(f *pflag.FlagSet) {
	store, timeout := "", UsualTimeout
	if s.Serves != "" {
		store, timeout = "; "+s.Serves, 0
	}
	if s.Bucket == "" {
		s.Bucket = usualBucket
	}
	usage := stores.Containers() + " that holds the elections: " + stores.Forms() + store
	if s.Several {
		f.StringArrayVar(&s.stores, FlagStore, nil, usage+"; may be given more than once")
	} else {
		f.StringVar(&s.store, FlagStore, "", usage)
	}
	f.StringVar(&s.context, FlagContext, "",
		"instead of --store, a context of the nats command, NAME[/BUCKET]: it keeps passwords off the command line; the bucket is "+s.Bucket+" by default")
	f.StringVar(&s.properties, flagProperties, "",
		"file with properties of Kafka's clients (TLS, users), such as Kafka's own tools take with --command-config")
	f.DurationVar(&s.Timeout, flagTimeout, timeout, "how long to wait for servers that cannot be reached; 0: not at all")
	if s.Creates {
		f.BoolVar(&s.Create, "create", false, "make the "+stores.Containers()+" if it is missing")
	}
	Group(f, GroupStore)
}

// Place returns the store that the flags or their variables name. It is zero only if the command
// starts a server itself and the flags name none. The errors have hints and show no credentials.
func (s *StoreFlags) Place(f *pflag.FlagSet, from Sources, env func(string) string) (stores.Place, error) {
	p, err := s.named(f, from, env)
	return p, fault.OfValue(err)
}

// Require returns an error if the store and another flag are missing. If only one is, the error for
// that one comes later.
func (s *StoreFlags) Require(f *pflag.FlagSet, other string) error {
	if f.Changed(FlagStore) || s.context != "" || s.Serves != "" || f.Changed(other) {
		return nil
	}
	return stores.Missing("--"+FlagStore, "--"+other)
}

// Places returns all stores that the flags name.
func (s *StoreFlags) Places(f *pflag.FlagSet, from Sources, env func(string) string) ([]stores.Place, error) {
	var all []stores.Place
	urls := s.stores
	if len(urls) == 0 {
		urls = []string{""} // it may be a context
	}
	for _, url := range urls {
		one := *s
		one.store = url
		p, err := one.Place(f, from, env)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (s *StoreFlags) named(f *pflag.FlagSet, from Sources, env func(string) string) (stores.Place, error) {
	url, err := s.URL(f, from)
	if err != nil {
		return stores.Place{}, err
	}
	p := stores.Place{}
	switch {
	case s.inContext(f, from):
		p, err = stores.ParseContext(from.Named(FlagContext), s.context, s.Bucket)
	case url != "" || f.Changed(FlagStore):
		p, err = stores.Parse(from.Named(FlagStore), url)
	case s.Serves == "":
		return p, stores.Missing("--" + FlagStore)
	}
	if err != nil {
		return p, err
	}
	p, takes, err := p.With(stores.Settings{Setting: from.Named(flagProperties), File: s.properties, Env: env})
	if !takes {
		return p, s.WithoutProperties(f, from)
	}
	return p, err
}

// URL returns the value of --store, or an empty string if --context decides.
func (s *StoreFlags) URL(f *pflag.FlagSet, from Sources) (string, error) {
	switch {
	case from.ByHand(f, FlagStore) && from.ByHand(f, FlagContext):
		return "", fault.OfUsage(errors.New("--store and --context both name a server: give one of them"))
	case s.inContext(f, from):
		return "", nil
	}
	return s.store, nil
}

// inContext reports whether --context names the store. The command line has precedence over
// variables; among variables the URL has precedence over the context.
func (s *StoreFlags) inContext(f *pflag.FlagSet, from Sources) bool {
	return s.context != "" && (from.ByHand(f, FlagContext) || s.store == "")
}

// WithoutProperties returns an error if --kafka-properties is on the command line. Its variable is
// ignored, as it may be set for another command.
func (s *StoreFlags) WithoutProperties(f *pflag.FlagSet, from Sources) error {
	if from.ByHand(f, flagProperties) {
		return fault.OfUsage(errors.New("--" + flagProperties + " needs --store kafka://..."))
	}
	return nil
}

// Waiting returns a function that prints the reason for waiting, once.
func (s *StoreFlags) Waiting(errs io.Writer) func(error) {
	var once sync.Once
	return func(err error) {
		once.Do(func() { fault.Tell(errs, "waiting up to "+s.Timeout.String(), err) })
	}
}

// Connect opens the store and reads the election's record. While the servers cannot be reached it
// tries again, for --connect-timeout, and calls told once. It returns at once if waiting cannot
// help. The errors have hints, except for the cause of ctx if that has ended.
func (s *StoreFlags) Connect(
	ctx context.Context, p stores.Place, election string, o stores.Options, told func(error),
) (*stores.Store, error) {
	o.Create = s.Create
	var once sync.Once
	return stores.Connect(ctx, p, election, o, stores.Patience{Limit: s.Timeout, Told: func(err error) {
		once.Do(func() { told(err) })
	}})
}
