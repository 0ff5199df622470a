//go:build integration

package natskv

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// atServer returns the findings about the given servers.
func atServer(t *testing.T, s *Store) []driver.Finding {
	t.Helper()
	found, err := s.Inspect(wait.Context(t), testLease)
	if err != nil {
		t.Fatal(err)
	}
	var about []driver.Finding
	for _, f := range found {
		if f.Setting == "servers" {
			about = append(about, f)
		}
	}
	return about
}

// TestInspectFindsTwoClusters: at the start the right bucket is not known, and each candidate may
// connect to another one.
func TestInspectFindsTwoClusters(t *testing.T) {
	t.Parallel()
	s, _, second := twoClusters(t)
	found := atServer(t, s)
	host := strings.TrimPrefix(second.server.ClientURL(), "nats://")
	if len(found) != 1 || found[0].Severity != driver.Unsafe || !strings.Contains(found[0].Problem, host+", one of the servers given, has another bucket ELECTIONS") {
		t.Errorf("found %v", found)
	}
	second.must(second.js.DeleteKeyValue(wait.Context(t), "ELECTIONS"))
	if found := atServer(t, s); len(found) != 1 || !strings.Contains(found[0].Problem, "has no bucket ELECTIONS") {
		t.Errorf("without the bucket there: %v", found)
	}
	wait.Until(t, "the second cluster has no connections but the test's", func() bool { return second.server.NumClients() == 1 })
}

// TestInspectAsksWithoutJetStream: a server without JetStream belongs to no cluster with JetStream.
func TestInspectAsksWithoutJetStream(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := startServer(t, withoutJetStream)
	nc := connect(t, f.server.ClientURL()+","+other.ClientURL(), nats.DontRandomize())
	s := openStore(t, newJetStream(t, nc), f.kv.Bucket())
	if found := atServer(t, s); len(found) != 1 || !strings.Contains(found[0].Problem, "has no bucket") {
		t.Errorf("found %v", found)
	}
}
