//go:build integration

// Package stores_test opens stores of the commands on servers. The tests are in the module of the
// demo, which contains the servers.
package stores_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kfake"
)

// enter opens a place and reads a record there. It returns a temporary error only if that is the
// wanted one.
func enter(t *testing.T, url string, create bool, want string) (*stores.Store, error) {
	t.Helper()
	return places.Enter(t, places.Parse(t, url), create, want)
}

func TestBucketOrTopicIsCreatedIfAsked(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"nats://all:s3cret@" + withAccounts(t) + "/E", "kafka://all:s3cret@" + withUsers(t) + "/t"} {
		for _, create := range []bool{true, false} { // the second time it exists
			if _, err := enter(t, url, create, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPermanentErrors(t *testing.T) {
	t.Parallel()
	host := withAccounts(t)
	places.Permanent(t, "nats://"+host+"/E", "nats://all:wrong@"+host+"/E", "nats://mute:s3cret@"+host+"/E", "nats://all:s3cret@"+host+"/E",
		"tls://"+host+"/E", "kafka://"+servers.Kafka(t)+"/t", "kafka://all:wrong@"+withUsers(t)+"/t")
}

// The servers start at the first failure.
func TestConnectWaitsForUnreachableServers(t *testing.T) {
	t.Parallel()
	for url, start := range map[string]func(port int){
		"nats://HOST/E": func(port int) {
			servers.Start(t, &server.Options{Host: ports.Host, Port: port, JetStream: true})
		},
		"kafka://HOST/t": func(port int) { servers.Kafka(t, kfake.Ports(port), kfake.NumBrokers(1)) },
	} {
		failures := 0
		free, err := ports.Free(1)
		must.OK(t, err)
		place := places.Parse(t, strings.Replace(url, "HOST", ports.Address(free[0]), 1))
		s, err := stores.Connect(wait.Context(t), place, "key", stores.Options{Create: true}, stores.Patience{
			Limit: stores.Forever, Told: func(err error) {
				if failures++; failures == 1 {
					start(free[0])
				}
				if !fault.Passes(err) {
					t.Errorf("waits after %v", err)
				}
			},
		})
		if err != nil || failures == 0 {
			t.Fatalf("%s: %v after %d failures", url, err, failures)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
