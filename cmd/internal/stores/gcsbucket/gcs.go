// Package gcsbucket describes stores in buckets of Google Cloud Storage.
package gcsbucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/gcsobject"
)

// Place is a bucket of Google Cloud Storage. Credentials are not a part of it: they are the
// application default credentials.
type Place struct {
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	// Anonymous sends no credentials.
	Anonymous bool `json:"anonymous,omitempty"`
}

var parameters = []kind.Parameter{
	{Name: "endpoint", Value: "URL", Meaning: "another address than https://storage.googleapis.com"},
	{Name: "anonymous", Value: "true", Meaning: "send no credentials, as to an emulator"},
}

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:        "gcs",
		Container:  "bucket",
		Schemes:    []kind.Scheme{{Name: "gs", Form: "gs://BUCKET[/PREFIX]"}},
		About:      "Google Cloud Storage, --store gs://BUCKET[/PREFIX][?...], takes these parameters",
		Parameters: parameters,
		Notes: `Credentials are Google's application default credentials: GOOGLE_APPLICATION_CREDENTIALS, those of
gcloud, or the service account of the machine or workload, never from the URL.`,
		Polled:      []string{"Google Cloud Storage"},
		TokenDigits: len("1795270861001"), // milliseconds of a server's clock
		DemoLease:   6 * time.Second,
		Parse:       func(_, raw string) (kind.Place, error) { return parse(raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

// String returns the URL.
func (g *Place) String() string {
	anonymous := ""
	if g.Anonymous {
		anonymous = "true"
	}
	return kind.With(g.object(""), "?", [2]string{"endpoint", g.Endpoint}, [2]string{"anonymous", anonymous})
}

// object returns the URL of an object, or of the place.
func (g *Place) object(key string) string {
	u := "gs://" + g.Bucket
	if g.Prefix != "" {
		u += "/" + g.Prefix
	}
	if key != "" {
		u += "/" + key
	}
	return u
}

// GoString is String.
func (g *Place) GoString() string { return g.String() }

// Product returns Google Cloud Storage.
func (g *Place) Product() string { return "Google Cloud Storage" }

// Pushes returns false.
func (g *Place) Pushes() bool { return false }

// Prices returns those of Google, which docs/gcs.md also has, or none for an emulator.
func (g *Place) Prices() kind.Prices {
	if g.Anonymous {
		return kind.Prices{}
	}
	return kind.Prices{Read: 0.0004, Write: 0.005, List: "Standard storage, one region", Date: "2026-11-29"}
}

// Pace returns that of Google. Emulators get the same one.
func (g *Place) Pace() time.Duration { return gcsobject.Pace }

// Commands returns those of gcloud, or of curl if there are no credentials.
func (g *Place) Commands(key string) kind.Commands {
	if g.Anonymous {
		name := strings.TrimPrefix(g.object(key), "gs://"+g.Bucket+"/")
		object := cmp.Or(g.Endpoint, gcsobject.Endpoint) + "/storage/v1/b/" + g.Bucket + "/o/" + url.PathEscape(name)
		return kind.Commands{Look: "curl '" + object + "?alt=media'", Delete: "curl -X DELETE '" + object + "'"}
	}
	object := "'" + strings.ReplaceAll(g.object(key), "'", `'\''`) + "'"
	return kind.Commands{Look: "gcloud storage cat " + object, Delete: "gcloud storage rm " + object}
}

// Limits calls no server: the driver's store sends nothing before it is used.
func (g *Place) Limits() (driver.Bounded, error) {
	return gcsobject.FromEnvironment(g.Bucket, g.options()...)
}

func (g *Place) options() []gcsobject.Option {
	all := []gcsobject.Option{gcsobject.WithPrefix(g.Prefix)}
	if g.Endpoint != "" {
		all = append(all, gcsobject.WithEndpoint(g.Endpoint))
	}
	if g.Anonymous {
		all = append(all, gcsobject.WithoutCredentials())
	}
	return all
}

// Open returns a store with a client of its own. It calls no server: --create makes no bucket,
// since a bucket needs a project and a location.
func (g *Place) Open(_ context.Context, o kind.Options) (*kind.Opened, error) {
	store, err := gcsobject.FromEnvironment(g.Bucket, append(g.options(), gcsobject.WithReport(o.Stale))...)
	if err != nil {
		return nil, fault.New(likeThis, "%w", err)
	}
	return &kind.Opened{Driver: store, Close: func() error { return nil }}, nil
}

// likeThis is the hint for a wrong URL.
const likeThis = "give a URL such as gs://bucket/prefix"

// chain says in hints where credentials belong.
const chain = "credentials come from GOOGLE_APPLICATION_CREDENTIALS, from gcloud auth application-default login, or from the " +
	"service account of the machine or workload; take them out of the URL"

// parse reads a URL of the form gs://bucket[/prefix][?parameter=value[&...]].
func parse(raw string) (*Place, error) {
	u, err := kind.ParseURL(raw, chain, likeThis)
	switch {
	case err != nil:
		return nil, err
	case u.Host == "":
		return nil, fault.New(likeThis, "names no bucket")
	case strings.Contains(u.Path, "@") && !isBucket(u.Host):
		return nil, fault.New(chain, "has credentials in it")
	case !isBucket(u.Host):
		return nil, fault.New("name a bucket of 3 to 222 small letters, digits, -, _ and ., which begins and ends with a letter or a "+
			"digit; "+likeThis, "no bucket can have the name %.80q", u.Host)
	}
	g := &Place{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	q := kind.Query{Known: kind.Names(parameters), Hint: likeThis, Elsewhere: chain, IsCredential: secretive.MatchString}
	if err := q.Each(u.RawQuery, g.set); err != nil {
		return nil, err
	}
	if _, err := g.Limits(); err != nil { // the prefix
		return nil, fault.New(likeThis, "%w", err)
	}
	return g, nil
}

// isBucket accepts the names that Google accepts.
func isBucket(name string) bool {
	return 3 <= len(name) && len(name) <= 222 && bucketName.MatchString(name)
}

// bucketName leaves the length out: {1,220} would take 150 KB of memory in every process.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*[a-z0-9]$`)

// secretive finds parameters by which people may try to pass credentials.
var secretive = regexp.MustCompile(`(?i)key|secret|token|password|credential|signature|account`)

func (g *Place) set(key, value string) (err error) {
	if key == "anonymous" {
		g.Anonymous, err = kind.Bool(value)
		return err
	}
	g.Endpoint, err = kind.Endpoint(value, chain)
	return err
}

// Explain returns the error for a bucket that cannot be used. The driver's errors say what to do.
// Hints add documents.
func (g *Place) Explain(err error) *fault.Error {
	var answer gcsobject.AnswerError
	if answered, ok := errors.AsType[*gcsobject.AnswerError](err); ok {
		answer = *answered
	}
	if answer.Status == http.StatusNotFound {
		return fault.New("check its name, or make it with: gcloud storage buckets create gs://"+g.Bucket+"; --create makes no bucket "+
			"here, since it needs a project and a location", "there is no bucket %s", g.Bucket)
	}
	return kind.ExplainHTTP(err, answer.Status, cmp.Or(g.Endpoint, "Google Cloud Storage"),
		"docs/gcs.md has a role that is enough for a candidate", "check the network, and endpoint= if there is one")
}

var _ fmt.GoStringer = (*Place)(nil)
