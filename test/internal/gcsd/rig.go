package gcsd

import (
	"context"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/gcsobject"
	"github.com/tenure-go/tenure/internal/test/gcsfake"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// writers is the number of clients that contend for an object.
const writers = 8

// bucket is the one of a site.
const bucket = "elections"

// Rigs returns the server of this project, and the emulator.
func Rigs() []rig.Rig {
	fake := rig.Rig{Name: "gcs", SoakElections: true, Clients: writers, Kind: forPrograms, Start: func(t testing.TB, _ bool) rig.Site {
		s, err := Run(bucket)
		rig.Must(t, err)
		t.Cleanup(func() { _ = s.Kill() })
		for _, user := range []string{candidate, denied} {
			s.Allow(user, permissions[user]...)
		}
		return site{s}
	}}
	emulator := rig.Rig{Name: "gcs-emulator", Soak: true, SameClients: true, Clients: writers, Start: startEmulator}
	return []rig.Rig{fake, emulator}
}

// The users, by their tokens.
const (
	candidate = "candidate"
	denied    = "denied"
)

var permissions = map[string][]string{candidate: gcsfake.All, denied: nil}

// site is a bucket on a running server.
type site struct{ *Server }

// Open connects over a relay.
func (s site) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	r, err := relay.New(s.URL())
	rig.Must(t, err)
	t.Cleanup(r.Close)
	return newStore(t, relayed(r), bucket, candidate), r
}

// relayed returns the endpoint of a relay.
func relayed(r *relay.Relay) string { return "http" + r.URL()[len("nats"):] }

// fast is a store on a server that takes writes at any pace, so that leases may be shorter than on
// Cloud Storage. Tests of every store need that.
type fast struct{ *gcsobject.Store }

// MinLease is that of other object storage.
func (fast) MinLease() time.Duration { return 2 * time.Second }

// newStore returns a store over its own client, as another process has one.
func newStore(t testing.TB, url, bucket, token string) driver.Store {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	store, err := gcsobject.New(&http.Client{Transport: bearer{transport, token}}, bucket, gcsobject.WithEndpoint(url))
	rig.Must(t, err)
	return fast{store}
}

// bearer adds a token to each request.
type bearer struct {
	http.RoundTripper
	token string
}

// RoundTrip sends a request.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

func (s site) Kit(t testing.TB) drivertest.Harness {
	remove := func(_ context.Context, key string) error { s.Delete(bucket, key); return nil }
	return drivertest.Harness{
		Denied: newStore(t, s.URL(), bucket, denied), Delete: remove, Purge: remove, FloorTick: time.Second, Lease: 5 * time.Second,
		Recreate: func(context.Context) error { s.Recreate(bucket); return nil },
	}
}

func (s site) Faults() []rig.Fault {
	return rig.Of(func(*rand.Rand) rig.Server { return s.Server }, writers)
}

// forPrograms is how programs run the server of this project.
var forPrograms = rig.Kind{
	Title:  "Google Cloud Storage (a server of this project) over loopback and a relay for each candidate",
	Polled: true,
	URL: func(address string) string {
		return "gs://" + bucket + "?endpoint=http://" + address + "&anonymous=true"
	},
	Start: func(context.Context, string) (rig.Running, error) {
		s, err := Run(bucket)
		return running{s}, err
	},
	Connect: connect,
}

type running struct{ *Server }

func (r running) Addresses() []string { return []string{r.Address()} }
func (r running) End()                { _ = r.Kill() }

func (r running) Create(_ context.Context, bucket string) error { r.Recreate(bucket); return nil }

// connect makes one client.
func connect(c rig.Connector) (rig.Opener, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute}
	client := &http.Client{Transport: counting{transport, c.Count}}
	return func(_ context.Context, bucket string) (driver.Store, error) {
		return gcsobject.New(client, bucket, gcsobject.WithEndpoint("http://"+c.Address()))
	}, nil
}

// counting counts requests.
type counting struct {
	http.RoundTripper
	count func(kind string)
}

// RoundTrip sends a request.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.count(r.Method)
	return c.RoundTripper.RoundTrip(r)
}
