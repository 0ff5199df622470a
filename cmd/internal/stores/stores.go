// Package stores opens the store that the command line names. Each kind of store is a package below
// it, which describes the kind; this package lists them.
package stores

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/gcsbucket"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/cmd/internal/stores/natsbucket"
	"github.com/tenure-go/tenure/cmd/internal/stores/s3bucket"
	"github.com/tenure-go/tenure/cmd/internal/stores/sqltable"
	"github.com/tenure-go/tenure/driver"
)

// Kinds returns the descriptions of all kinds of stores.
func Kinds() []*kind.Kind { return kinds }

// kinds has more in azure.go, dynamodb.go, etcd.go, kubernetes.go and redis.go, which a build can
// leave out.
var kinds = []*kind.Kind{
	natsbucket.Kind(),
	s3bucket.Kind(),
	gcsbucket.Kind(),
	kafkatopic.Kind(),
	sqltable.Kind(),
}

// optional has the build tag that leaves a scheme out.
var optional = map[string]string{
	"azblob":   "no_azure",
	"dynamodb": "no_dynamodb",
	"etcd":     "no_etcd", "etcds": "no_etcd",
	"k8s":   "no_kubernetes",
	"redis": "no_redis", "rediss": "no_redis", "valkey": "no_redis", "valkeys": "no_redis",
}

type (
	// Options are those of package kind.
	Options = kind.Options
	// Settings are those of package kind.
	Settings = kind.Settings
	// Nomination is that of package kind.
	Nomination = kind.Nomination
	// Commands are those of package kind.
	Commands = kind.Commands
)

// Place says where elections are kept. It may hold credentials; String leaves them out.
type Place struct {
	// Setting is the source of the place, for errors: "--store", "--context", or a variable of the
	// environment.
	Setting string
	// At is nil if no place is named.
	At kind.Place
}

// Missing returns the error if the store, and perhaps another setting, must be given.
func Missing(store string, others ...string) error {
	text := store + " is missing"
	if len(others) > 0 {
		text = strings.Join(append([]string{store}, others...), " and ") + " are missing"
	}
	return &fault.Error{Err: errors.New(text), Hint: likeThis + "; or a context of the nats command with --context", Code: fault.Usage}
}

const likeThis = "give a URL such as nats://host:4222/ELECTIONS or postgres://user@host/database; tenure help stores has the URL of each store"

// Forms shows the URL of each scheme for the help of a flag.
func Forms() string {
	return listed(", or ", schemes(func(s kind.Scheme) string { return s.Form })...)
}

// Containers names for help texts what holds elections: bucket, topic or table.
func Containers() string {
	var all []string
	for _, k := range kinds {
		if !slices.Contains(all, k.Container) {
			all = append(all, k.Container)
		}
	}
	return listed(" or ", all...)
}

func schemes(of func(kind.Scheme) string) (all []string) {
	for _, k := range kinds {
		for _, s := range k.Schemes {
			all = append(all, of(s))
		}
	}
	return all
}

// listed joins items by commas, and the last one by a word.
func listed(last string, items ...string) string {
	n := len(items) - 1
	return strings.Join(items[:n], ", ") + last + items[n]
}

// About explains in help texts all kinds but those with these keys.
func About(without ...string) string {
	var all, polled []string
	for _, k := range kinds {
		polled = append(polled, k.Polled...)
		if !slices.Contains(without, k.Key) {
			all = append(all, k.Help())
		}
	}
	stores := listed(" and ", polled...)
	return strings.Join(append(all, strings.ToUpper(stores[:1])+stores[1:]+aboutPeers), "\n\n")
}

const aboutPeers = ` do not push changes. With --peer each candidate listens, publishes
its address in the record while it leads, and reports renewals and its release to the others. A
candidate dials only addresses in --peer-allow. By default these are the loopback addresses if its
own address is one of them, and otherwise the private ones (10.0.0.0/8, 172.16.0.0/12,
192.168.0.0/16, fc00::/7). A public address needs --peer-allow. Without certificates peers talk
plain HTTP; their reports are signed in any case.`

// Parse reads the URL of a store. Its errors name the setting and show no credentials.
func Parse(setting, raw string) (Place, error) {
	at, err := parse(raw)
	if err != nil {
		return Place{}, Given(setting, raw, err)
	}
	return Place{setting, at}, nil
}

func parse(raw string) (kind.Place, error) {
	if !utf8.ValidString(raw) {
		return nil, fault.New("write it in UTF-8; so must be the name of an SQLite file", "is not UTF-8")
	}
	name, rest, _ := strings.Cut(raw, ":")
	for _, k := range kinds {
		if err := k.Refused[name]; err != nil {
			return nil, err
		}
	}
	s, k := kind.Find(kinds, name)
	switch {
	case name == kind.Memory:
		return nil, fault.New(likeThis, "a store in memory is inside one process, and candidates are processes of their own")
	case s == nil && optional[name] != "":
		return nil, fault.New("build it without -tags "+optional[name], "this build of tenure has no such store")
	case s == nil && strings.HasPrefix(rest, "//"):
		return nil, fault.New(likeThis, "unknown scheme; %s", known())
	case s == nil: // such as HOST:PORT
		return nil, fault.New(likeThis, "is not a URL: no scheme is in front; %s", known())
	case !strings.HasPrefix(rest, "//") && !s.Opaque:
		return nil, fault.New("the form is "+s.Form, "is not a URL: // must follow %s:", s.Name)
	}
	if odd := s.CheckName(s.Name + ":" + rest); odd != nil {
		return nil, odd // other errors may quote the name
	}
	return k.Parse(s.Name, s.Name+":"+rest)
}

// known lists the schemes for errors.
func known() string {
	return "known are " + strings.Join(schemes(func(s kind.Scheme) string { return s.Name }), ", ")
}

// ParseContext reads NAME[/BUCKET], a context of the nats command; bucket is the default. Its
// errors name the setting.
func ParseContext(setting, raw, bucket string) (Place, error) {
	at, err := natsbucket.ParseContext(raw, bucket)
	if err != nil {
		return Place{}, inFront(setting+" "+fault.Quote(raw), err)
	}
	return Place{setting, at}, nil
}

// Contexts returns the names of the contexts of the nats command.
func Contexts() []string { return natsbucket.Contexts() }

// Variables returns the variables of the environment that set properties of clients for which there
// is no flag.
func Variables() []string { return kafkatopic.Variables() }

// Given puts the setting, and its value as far as it holds no credentials, in front of an error.
func Given(setting, raw string, err error) error {
	if shown := Redact(raw); shown != fault.Hidden {
		setting += " " + strconv.Quote(shown)
	}
	return inFront(setting, err)
}

// Redact returns a text that should be the URL of a store without all possible credentials.
func Redact(raw string) string { return kind.Redact(kinds, raw) }

// With returns the place with the settings that are not in its URL. Its errors have hints and show
// no credentials. It returns false for a place that has no such settings.
func (p Place) With(s kind.Settings) (Place, bool, error) {
	configured, ok := p.At.(kind.Configured)
	if !ok {
		return p, false, nil
	}
	s.Place = p.Setting
	at, err := configured.With(s)
	if err != nil {
		return p, true, err
	}
	return Place{p.Setting, at}, true, nil
}

// Description returns that of the kind of store.
func (p Place) Description() *kind.Kind {
	for _, k := range kinds {
		if reflect.TypeOf(k.Empty()) == reflect.TypeOf(p.At) {
			return k
		}
	}
	return nil
}

// Kind returns the name of the kind of store for messages.
func (p Place) Kind() string { return p.At.Product() }

// Pushes reports whether the store pushes changes. Other stores are polled, or have peers.
func (p Place) Pushes() bool { return p.At.Pushes() }

// Commands returns those for the record of an election.
func (p Place) Commands(key string) Commands { return p.At.Commands(key) }

// Prices returns those of requests. They are zero if they are not known. It returns false if this
// kind of store does not bill for requests.
func (p Place) Prices() (kind.Prices, bool) {
	if priced, ok := p.At.(kind.Priced); ok {
		return priced.Prices(), true
	}
	return kind.Prices{}, false
}

// Pace returns the shortest time between two writes to one record that the store takes; 0: any.
func (p Place) Pace() time.Duration {
	if paced, ok := p.At.(kind.Paced); ok {
		return paced.Pace()
	}
	return 0
}

// Nomination returns one line of text about the group that nominates the leader of an election, or
// an empty string if none does.
func (p Place) Nomination(election string) string {
	if n, ok := p.At.(kind.Nominated); ok {
		return n.Nomination(election)
	}
	return ""
}

// IsZero reports whether no place is named.
func (p Place) IsZero() bool { return p.At == nil }

// String returns the place without credentials.
func (p Place) String() string {
	if p.IsZero() {
		return "no store"
	}
	return p.At.String()
}

// GoString is String, so that no way of printing shows credentials.
func (p Place) GoString() string { return p.String() }

// MarshalJSON encodes the place with its credentials, but without the setting.
func (p Place) MarshalJSON() ([]byte, error) {
	if p.IsZero() {
		return []byte("{}"), nil
	}
	return json.Marshal(map[string]kind.Place{p.Description().Key: p.At})
}

// UnmarshalJSON decodes what MarshalJSON has encoded.
func (p *Place) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for _, k := range kinds {
		if one, ok := all[k.Key]; ok {
			p.At = k.Empty()
			return json.Unmarshal(one, p.At)
		}
	}
	return nil
}

// Limits returns those of leases and keys in the place. It calls no server, and the bucket, topic
// or table need not exist. With them Config.Check detects every wrong setting.
func (p Place) Limits() (driver.Bounded, error) {
	b, err := p.At.Limits()
	if err != nil {
		return nil, p.blame(err)
	}
	return b, nil
}

// Explain returns an error of the store with a hint.
func (p Place) Explain(err error) error { return p.blame(p.At.Explain(err)) }

// Unsafe returns the error for a finding that makes elections in this place unsafe.
func (p Place) Unsafe(f driver.Finding) error {
	return p.blame(fault.New(f.Remedy, "%s: %s: %s", f.Severity, f.Setting, f.Problem))
}

// Denied is Explain for a missing right whose error is known only as text.
func (p Place) Denied(text string) error {
	return p.Explain(&deniedError{text})
}

type deniedError struct{ text string }

func (e *deniedError) Error() string { return e.text }
func (e *deniedError) Unwrap() error { return driver.ErrDenied }

// blame puts the setting and its value, without credentials, in front of an error.
func (p Place) blame(err error) error {
	setting := p.Setting
	if setting == "" {
		setting = "store"
	}
	name := p.String()
	if n, ok := p.At.(kind.Named); ok {
		name = n.Name()
	}
	return inFront(setting+" "+name, err)
}

// inFront puts a text in front of an error. It keeps the hint, and whether waiting may help.
func inFront(text string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Behind(text)
	}
	return fault.New("", "%s: %w", text, err)
}
