package k8sd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/k8slease"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// Rigs returns the fake, and the library of Kubernetes, which takes minutes to build.
func Rigs() []rig.Rig {
	on := func(name string, p Program) rig.Rig {
		return rig.Rig{Name: name, Kind: kind(p), Start: func(t testing.TB, _ bool) rig.Site {
			s, err := p.Start(t.TempDir())
			rig.Must(t, err)
			t.Cleanup(s.End)
			return site{s}
		}}
	}
	real := on("k8s-apiserver", APIServer)
	real.Soak = true
	return []rig.Rig{on("k8s", Fake), real}
}

// site is a namespace on a server.
type site struct{ *Server }

// Open connects through a relay.
func (s site) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	r := rig.Relay(t, "tcp://"+s.Address())
	config := s.Config(Admin)
	config.Host = "https://" + r.Address()
	return s.store(t, config, Namespace), r
}

func (s site) store(t testing.TB, config *rest.Config, namespace string) driver.Store {
	t.Helper()
	store, err := k8slease.New(config, namespace)
	rig.Must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// Kit deletes Leases as kubectl does. A deleted namespace loses all of them.
func (s site) Kit(t testing.TB) drivertest.Harness {
	client, err := rest.HTTPClientFor(s.Config(Admin))
	rig.Must(t, err)
	remove := func(ctx context.Context, key string) error {
		return s.request(ctx, client, http.MethodDelete, "/"+key, nil)
	}
	rig.Must(t, s.Bind("nobody", Namespace))
	return drivertest.Harness{
		Denied: s.store(t, s.Config("nobody"), Namespace), Delete: remove, Purge: remove,
		Recreate: func(ctx context.Context) error {
			var all struct {
				Items []struct{ Metadata struct{ Name string } }
			}
			if err := s.request(ctx, client, http.MethodGet, "", &all); err != nil {
				return err
			}
			for _, l := range all.Items {
				if err := remove(ctx, l.Metadata.Name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// request sends a request about Leases of the namespace.
func (s site) request(ctx context.Context, client *http.Client, method, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, "https://"+s.Address()+leases(Namespace)+path, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case method == http.MethodDelete && answer.StatusCode == http.StatusNotFound:
		return nil
	case answer.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}

// Faults are those of one server.
func (s site) Faults() []rig.Fault {
	return rig.Of(func(*rand.Rand) rig.Server { return s.Server }, 8)
}

// Restores reports that the files of the store can be put back, as after a restore of etcd. The
// uids stay the same then, and revisions recur.
func (s site) Restores() bool { return true }

// Backup copies the files.
func (s site) Backup(t testing.TB) func() {
	restore, err := s.Server.Backup()
	rig.Must(t, err)
	return func() { rig.Must(t, restore()) }
}
