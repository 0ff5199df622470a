// Package azured runs servers that speak the protocol of Azure Blob Storage: one of this project,
// with rights and faults, and the emulator azurite. Azure itself is in no test.
package azured

import (
	"context"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/azureblob"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/internal/test/azurefake"
	"github.com/tenure-go/tenure/test/internal/outage"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// writers is the number of clients that contend for a blob.
const writers = 8

// container is the one of a site.
const container = "elections"

// Server is an azurefake.Server that can fail. It keeps its blobs and its port through outages.
type Server struct {
	*azurefake.Server
	*outage.Host
}

// Run starts a server with these containers.
func Run(containers ...string) (*Server, error) {
	fake := azurefake.New(containers...)
	s, err := outage.Run(fake)
	return &Server{fake, s}, err
}

// Rigs returns the server of this project, and the emulator.
func Rigs() []rig.Rig {
	fake := rig.Rig{Name: "azure", SoakElections: true, Clients: writers, Kind: forPrograms, Start: func(t testing.TB, _ bool) rig.Site {
		s, err := Run(container)
		rig.Must(t, err)
		t.Cleanup(func() { _ = s.Kill() })
		s.Allow(candidate, azurefake.All)
		s.Allow(denied, "")
		return site{s}
	}}
	emulator := rig.Rig{Name: "azurite", Soak: true, SameClients: true, Clients: writers, Start: startEmulator}
	return []rig.Rig{fake, emulator}
}

// The users, by the signatures of their SAS tokens.
const (
	candidate = "candidate"
	denied    = "denied"
)

// site is a container on a running server.
type site struct{ *Server }

// Open connects over a relay.
func (s site) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	r, err := relay.New(s.URL())
	rig.Must(t, err)
	t.Cleanup(r.Close)
	return s.open(t, relayed(r), container, token(candidate)), r
}

// relayed returns the URL of a relay.
func relayed(r *relay.Relay) string { return "http" + r.URL()[len("nats"):] }

// token returns a SAS token.
func token(user string) string { return "sv=2025-01-05&sig=" + user }

// open returns a store over its own client, as another process has one.
func (s site) open(t testing.TB, server, container, token string) driver.Store {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	store, err := azureblob.New(server+"/"+azurefake.Account+"/"+container+"?"+token, nil, azureblob.WithClient(&http.Client{Transport: transport}))
	rig.Must(t, err)
	return store
}

func (s site) Kit(t testing.TB) drivertest.Harness {
	remove := func(_ context.Context, key string) error { s.Delete(container, key); return nil }
	return drivertest.Harness{
		Denied: s.open(t, s.URL(), container, token(denied)), Delete: remove, Purge: remove, FloorTick: time.Second,
		Recreate: func(context.Context) error { s.Recreate(container); return nil },
	}
}

func (s site) Faults() []rig.Fault {
	return rig.Of(func(*rand.Rand) rig.Server { return s.Server }, writers)
}

// forPrograms is how programs run the server of this project.
var forPrograms = rig.Kind{
	Title:  "Azure Blob Storage (a server of this project) over loopback and a relay for each candidate",
	Polled: true,
	URL: func(address string) string {
		return "azblob://" + azurefake.Account + "/" + container + "?endpoint=http://" + address + "/" + azurefake.Account
	},
	Env: func(string) []string { return []string{"AZURE_STORAGE_SAS_TOKEN=" + token(candidate)} },
	Start: func(context.Context, string) (rig.Running, error) {
		s, err := Run(container)
		return running{s}, err
	},
	Connect: connect,
}

type running struct{ *Server }

func (r running) Addresses() []string { return []string{r.Address()} }
func (r running) End()                { _ = r.Kill() }

func (r running) Create(_ context.Context, container string) error {
	r.Recreate(container)
	return nil
}

// connect makes one client.
func connect(c rig.Connector) (rig.Opener, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute}
	client := &http.Client{Transport: counting{transport, c.Count}}
	return func(_ context.Context, container string) (driver.Store, error) {
		place := "http://" + c.Address() + "/" + azurefake.Account + "/" + container
		return azureblob.New(place+"?"+token(candidate), nil, azureblob.WithClient(client))
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
