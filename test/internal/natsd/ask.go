package natsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/internal/test/wait"
)

const (
	// pause is the time between two attempts to connect.
	pause = 50 * time.Millisecond
	// attention is the time limit for one answer. A frozen server never answers.
	attention = 2 * time.Second
)

// ask calls question, over any server that answers, until there is no error or the context ends.
func (c *Cluster) ask(ctx context.Context, what string, question func(context.Context, jetstream.JetStream) error) error {
	return ask(ctx, c.URLs(), what, question)
}

func ask(ctx context.Context, urls []string, what string, question func(context.Context, jetstream.JetStream) error) error {
	nc, err := nats.Connect(strings.Join(urls, ","), nats.Timeout(attention), nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1), nats.ReconnectWait(pause), nats.PingInterval(attention), nats.MaxPingsOutstanding(1))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return until(ctx, what, func(ctx context.Context) error { return question(ctx, js) })
}

// until tries until there is no error or the context ends.
func until(ctx context.Context, what string, try func(context.Context) error) error {
	err := wait.Poll(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, attention)
		defer cancel()
		return try(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Ready waits until the servers have found each other and can keep a stream together.
func (c *Cluster) Ready(ctx context.Context) error {
	const probe = "natsd-ready"
	return c.ask(ctx, "the cluster is not ready", func(ctx context.Context, js jetstream.JetStream) error {
		for _, s := range c.Servers {
			if err := s.healthy(ctx); err != nil {
				return err
			}
		}
		if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: probe, Replicas: Members}); err != nil {
			return err
		}
		return js.DeleteStream(ctx, probe)
	})
}

// Leader returns the server that leads a stream. It waits until there is one.
func (c *Cluster) Leader(ctx context.Context, stream string) (leader *Server, err error) {
	err = c.ask(ctx, "no leader of "+stream, func(ctx context.Context, js jetstream.JetStream) error {
		info, err := describe(ctx, js, stream)
		if err == nil {
			leader, err = c.Named(info.Cluster.Leader)
		}
		return err
	})
	return leader, err
}

func describe(ctx context.Context, js jetstream.JetStream, stream string) (*jetstream.StreamInfo, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	info := s.CachedInfo()
	if info.Cluster == nil {
		return nil, errors.New("the stream belongs to no cluster")
	}
	return info, nil
}

// Named returns the server with a name.
func (c *Cluster) Named(name string) (*Server, error) {
	for _, s := range c.Servers {
		if s.place.Name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%q is none of the servers", name)
}

// Hosts returns the servers that lead the consumers of a stream, by the consumers' names.
func (c *Cluster) Hosts(ctx context.Context, stream string) (hosts map[string]*Server, err error) {
	err = c.ask(ctx, "no consumers of "+stream, func(ctx context.Context, js jetstream.JetStream) error {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		hosts = map[string]*Server{}
		all := s.ListConsumers(ctx)
		for info := range all.Info() {
			if hosts[info.Name], err = c.Named(info.Cluster.Leader); err != nil {
				return err
			}
		}
		return all.Err()
	})
	return hosts, err
}

// Whole waits until every server reports itself healthy and has all messages of a stream.
func (c *Cluster) Whole(ctx context.Context, stream string) error {
	return c.ask(ctx, stream+" is not whole", func(ctx context.Context, js jetstream.JetStream) error {
		for _, s := range c.Servers {
			if err := s.healthy(ctx); err != nil {
				return err
			}
		}
		info, err := describe(ctx, js, stream)
		if err != nil {
			return err
		}
		if info.Cluster.Leader == "" || len(info.Cluster.Replicas) != Members-1 {
			return fmt.Errorf("led by %q, with %d others", info.Cluster.Leader, len(info.Cluster.Replicas))
		}
		for _, r := range info.Cluster.Replicas {
			if !r.Current || r.Offline {
				return fmt.Errorf("%s is behind", r.Name)
			}
		}
		return nil
	})
}

// Governed waits until each of these servers names one of them as the leader of the cluster. That
// leader answers requests for streams, keys and buckets that do not exist.
func (c *Cluster) Governed(ctx context.Context, by []*Server) error {
	return until(ctx, "the cluster has no leader", func(ctx context.Context) error {
		for _, s := range by {
			var said struct {
				Meta struct{ Leader string } `json:"meta_cluster"`
			}
			if err := s.monitored(ctx, "/jsz", &said); err != nil {
				return err
			}
			leader, err := c.Named(said.Meta.Leader)
			if err != nil {
				return err
			}
			if !slices.Contains(by, leader) {
				return fmt.Errorf("%s takes %s for the leader of the cluster", s.Name(), leader.Name())
			}
		}
		return nil
	})
}

// healthy returns an error unless the server reports that it is ready to serve.
func (s *Server) healthy(ctx context.Context) error {
	var health struct{ Status, Error string }
	if err := s.monitored(ctx, "/healthz", &health); err != nil {
		return err
	}
	if health.Status != "ok" {
		return fmt.Errorf("%s: %s %s", s.place.Name, health.Status, health.Error)
	}
	return nil
}

// Received returns how many messages the server has received, by the names of the connections.
func (s *Server) Received(ctx context.Context) (map[string]int, error) {
	var connz struct {
		Connections []struct {
			Name   string `json:"name"`
			InMsgs int    `json:"in_msgs"`
		} `json:"connections"`
	}
	err := s.monitored(ctx, "/connz?limit=10000", &connz)
	received := map[string]int{}
	for _, c := range connz.Connections {
		received[c.Name] += c.InMsgs
	}
	return received, err
}

// monitored reads a page of the server's monitor.
func (s *Server) monitored(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Monitor()+path, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	return json.NewDecoder(answer.Body).Decode(into)
}

// Lead makes one of the servers lead a stream, and waits until it does.
func (c *Cluster) Lead(ctx context.Context, stream string, by *Server) error {
	return c.ask(ctx, by.Name()+" does not lead "+stream, func(ctx context.Context, js jetstream.JetStream) error {
		info, err := describe(ctx, js, stream)
		if err != nil || info.Cluster.Leader == by.Name() {
			return err
		}
		wish := fmt.Sprintf(`{"placement":{"preferred":%q}}`, by.Name())
		if _, err := js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, []byte(wish)); err != nil {
			return err
		}
		return fmt.Errorf("%s leads", info.Cluster.Leader)
	})
}
