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
	"github.com/tenure-go/tenure/test/internal/rig"
)

// bucket is the one of a site.
const bucket = "elections"

// Rigs returns the server of this project, and the emulator.
func Rigs() []rig.Rig {
	fake := rig.Rig{Name: "gcs", SoakElections: true, Kind: forPrograms, Start: func(t testing.TB, _ bool) rig.Site {
		s, err := Run(bucket)
		rig.Must(t, err)
		t.Cleanup(func() { _ = s.Kill() })
		for _, user := range []string{candidate, denied} {
			s.Allow(user, permissions[user]...)
		}
		return site{s}
	}}
	emulator := rig.Rig{Name: "gcs-emulator", Soak: true, SameClients: true, Start: func(t testing.TB, _ bool) rig.Site {
		return emulated{rig.EmulatorFor(t, startEmulator)}
	}}
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
	r := rig.Relay(t, s.URL())
	return newStore(t, "http://"+r.Address(), bucket, candidate), r
}

// fast is a store on a server that takes writes at any pace, so that leases may be shorter than on
// Cloud Storage. Tests of every store need that.
type fast struct{ *gcsobject.Store }

// MinLease is that of other object storage.
func (fast) MinLease() time.Duration { return 2 * time.Second }

// newStore returns a store over its own client, as another process has one.
func newStore(t testing.TB, url, bucket, token string) driver.Store {
	t.Helper()
	client := rig.HTTPClient(t)
	client.Transport = bearer{client.Transport, token}
	store, err := gcsobject.New(client, bucket, gcsobject.WithEndpoint(url))
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
	return rig.Of(func(*rand.Rand) rig.Server { return s.Server }, rig.Writers)
}

// forPrograms is how programs run the server of this project.
var forPrograms = rig.Kind{
	Title:  "Google Cloud Storage (a server of this project) over loopback and a relay for each candidate",
	Polled: true, Shortest: 3 * gcsobject.Pace,
	URL: func(address string) string {
		return "gs://" + bucket + "?endpoint=http://" + address + "&anonymous=true"
	},
	Start: func(context.Context, string) (rig.Running, error) {
		return Run(bucket)
	},
	Connect: connect,
}

// connect makes one client.
func connect(c rig.Connector) (rig.Opener, error) {
	client := c.HTTPClient(rig.Method)
	return func(_ context.Context, bucket string) (driver.Store, error) {
		return gcsobject.New(client, bucket, gcsobject.WithEndpoint("http://"+c.Address()))
	}, nil
}
