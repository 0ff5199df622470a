package redisd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/rig"
)

func hasLine(text, line string) bool {
	for one := range strings.Lines(text) {
		if strings.TrimSpace(one) == line {
			return true
		}
	}
	return false
}

// Group is a primary with replicas, and three Sentinels that promote a replica after downAfter.
type Group struct {
	Servers, Sentinels []*Server
}

const (
	sentinels = 3
	primary   = "tenure" // the name of the primary in Sentinel
	downAfter = time.Second
)

// StartGroup runs a group for the length of a test. The first server is the primary.
func StartGroup(t testing.TB, replicas int, settings ...string) *Group {
	t.Helper()
	g := &Group{Servers: []*Server{Start(t, Redis, settings...)}}
	of := "replicaof " + strings.ReplaceAll(g.Servers[0].Address(), ":", " ")
	for range replicas {
		r := Start(t, Redis, append(settings, of)...)
		r.Until(t, "replication", "master_link_status:up")
		g.Servers = append(g.Servers, r)
	}
	found, err := ports.Free(sentinels)
	rig.Must(t, err)
	for _, port := range found {
		s := &Server{port: port}
		s.Dir = t.TempDir()
		t.Cleanup(s.End)
		rig.Must(t, s.begin(sentinel, []string{
			"port " + strconv.Itoa(port), "bind " + ports.Host, "dir " + s.Dir,
			"sentinel monitor " + primary + " " + strings.ReplaceAll(g.Servers[0].Address(), ":", " ") + " 2",
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", primary, downAfter.Milliseconds()),
			"sentinel failover-timeout " + primary + " 5000",
		}))
		g.Sentinels = append(g.Sentinels, s)
	}
	for _, s := range g.Sentinels {
		wait.Succeeds(t, "the Sentinels know each other", func(ctx context.Context) error {
			text, err := s.Do(ctx, "INFO", "sentinel")
			if err == nil && !strings.Contains(text, fmt.Sprintf("slaves=%d,sentinels=%d", replicas, sentinels)) {
				err = errors.New(text)
			}
			return err
		})
	}
	return g
}

// Primary returns the server that the first Sentinel takes for the primary.
func (g *Group) Primary(t testing.TB) *Server {
	t.Helper()
	var found *Server
	wait.Succeeds(t, "a primary", func(ctx context.Context) error {
		text, err := g.Sentinels[0].Do(ctx, "INFO", "sentinel")
		for _, s := range g.Servers {
			if strings.Contains(text, "address="+s.Address()) {
				found = s
				return err
			}
		}
		return errors.Join(err, errors.New("no primary in "+text))
	})
	return found
}

// whole waits until each other server follows the primary, and Sentinels see that.
func (g *Group) whole(t testing.TB) {
	t.Helper()
	for _, s := range g.Servers {
		wait.Succeeds(t, "the group is whole", func(ctx context.Context) error {
			text, err := s.Do(ctx, "INFO", "replication")
			follows := hasLine(text, "master_link_status:up")
			leads := hasLine(text, "role:master") && hasLine(text, "connected_slaves:"+strconv.Itoa(len(g.Servers)-1))
			if err == nil && !follows && !leads {
				err = errors.New(text)
			}
			return err
		})
	}
}

// guarded is a store over a group, which waits for all replicas.
func guarded(g *Group) *site {
	s := &site{servers: g.Servers, opts: []redisstore.Option{redisstore.WithWait(len(g.Servers) - 1)}}
	for _, one := range g.Sentinels {
		s.option.InitAddress = append(s.option.InitAddress, one.Address())
	}
	s.option.Sentinel = rueidis.SentinelOption{MasterSet: primary}
	fault := func(name, why string, fall, rise func(*Server) error) rig.Fault {
		return rig.Fault{
			Name: name, Why: why, Before: time.Second, Lasts: 6 * time.Second, Least: 12 * time.Second, Unknowns: 4, Quick: name == "primary killed",
			Fall: func(t testing.TB, _ *rand.Rand) func() {
				old := g.Primary(t)
				rig.Must(t, fall(old))
				return func() {
					rig.Must(t, rise(old))
					g.whole(t)
				}
			},
		}
	}
	s.faults = []rig.Fault{
		fault("primary killed", "a promoted replica has all that was acknowledged or read",
			func(s *Server) error { return s.Kill() }, func(s *Server) error { return s.Start() }),
		fault("primary paused", "a former primary that goes on acknowledges nothing before it becomes a replica",
			func(s *Server) error { return s.Pause() }, func(s *Server) error { return s.Resume() }),
	}
	return s
}
