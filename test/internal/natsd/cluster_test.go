//go:build integration

package natsd

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestCluster: a cluster continues without a server that was stopped, killed, paused or
// partitioned, and with it again.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("the soak does it")
	}
	ctx := wait.Context(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := StartPartible(t.TempDir())
	must(err)
	defer c.Kill()
	must(c.Ready(ctx))
	const stream = "S"
	must(c.ask(ctx, "make "+stream, func(ctx context.Context, js jetstream.JetStream) error {
		_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: stream, Replicas: Members})
		return err
	}))
	for name, f := range map[string]struct{ fall, rise func(*Server) error }{
		"stopped": {(*Server).Stop, (*Server).Start},
		"killed":  {func(s *Server) error { s.Kill(); return nil }, (*Server).Start},
		"paused":  {(*Server).Pause, (*Server).Resume},
		"parted":  {func(s *Server) error { c.Part(s); return nil }, func(s *Server) error { c.Heal(s); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			must(c.Whole(ctx, stream))
			old, err := c.Leader(ctx, stream)
			must(err)
			must(f.fall(old))
			must(until(ctx, "another leader", func(ctx context.Context) error {
				return c.publish(ctx, stream, old)
			}))
			must(f.rise(old))
			must(c.Whole(ctx, stream))
		})
	}
}

// publish publishes over the remaining servers.
func (c *Cluster) publish(ctx context.Context, subject string, without *Server) error {
	var urls []string
	for _, s := range c.Others(without) {
		urls = append(urls, s.URL())
	}
	nc, err := nats.Connect(strings.Join(urls, ","))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	_, err = js.Publish(ctx, subject, nil)
	return err
}
