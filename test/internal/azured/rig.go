// Package azured runs servers that speak the protocol of Azure Blob Storage: one of this project,
// with rights and faults, and the emulator azurite. Azure itself is in no test.
package azured

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/azureblob"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/internal/test/azurefake"
	"github.com/tenure-go/tenure/test/internal/outage"
	"github.com/tenure-go/tenure/test/internal/rig"
)

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

// Create makes a container.
func (s *Server) Create(_ context.Context, container string) error { s.Recreate(container); return nil }

// Rigs returns the server of this project, and the emulator.
func Rigs() []rig.Rig {
	fake := rig.Rig{Name: "azure", SoakElections: true, Kind: forPrograms, Start: func(t testing.TB, _ bool) rig.Site {
		s, err := Run(container)
		rig.Must(t, err)
		t.Cleanup(func() { _ = s.Kill() })
		s.Allow(candidate, azurefake.All)
		s.Allow(denied, "")
		return site{s}
	}}
	emulator := rig.Rig{Name: "azurite", Soak: true, SameClients: true, Kind: ofEmulator, Start: func(t testing.TB, _ bool) rig.Site {
		return emulated{rig.EmulatorFor(t, startEmulator)}
	}}
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
	r := rig.Relay(t, s.URL())
	return s.open(t, "http://"+r.Address(), container, token(candidate)), r
}

// token returns a SAS token.
func token(user string) string { return "sv=2025-01-05&sig=" + user }

// open returns a store over its own client, as another process has one.
func (s site) open(t testing.TB, server, container, token string) driver.Store {
	t.Helper()
	store, err := azureblob.New(server+"/"+azurefake.Account+"/"+container+"?"+token, nil, azureblob.WithClient(rig.HTTPClient(t)))
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
	return rig.Of(func(*rand.Rand) rig.Server { return s.Server }, rig.Writers)
}

// forPrograms is how programs run the server of this project.
var forPrograms = rig.Kind{
	Title:  "Azure Blob Storage (a server of this project) over loopback and a relay for each candidate",
	Polled: true,
	URL:    place,
	Env:    func(string) []string { return []string{"AZURE_STORAGE_SAS_TOKEN=" + token(candidate)} },
	Start:  func(context.Context, string) (rig.Running, error) { return Run(container) },
	Connect: func(c rig.Connector) (rig.Opener, error) {
		client := azureblob.WithClient(c.HTTPClient(rig.Method))
		return func(_ context.Context, container string) (driver.Store, error) {
			return azureblob.New("http://"+c.Address()+"/"+azurefake.Account+"/"+container+"?"+token(candidate), nil, client)
		}, nil
	},
}

// place returns the URL for --store.
func place(address string) string {
	return "azblob://" + azurefake.Account + "/" + container + "?endpoint=http://" + address + "/" + azurefake.Account
}
