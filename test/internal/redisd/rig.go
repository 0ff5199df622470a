package redisd

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// Rigs returns one server, one of Valkey if it is installed, a primary with a replica and
// Sentinels, and Clusters with and without replicas.
func Rigs() []rig.Rig {
	one := func(name, program string) rig.Rig {
		return rig.Rig{Name: name, Start: func(t testing.TB, _ bool) rig.Site {
			s := Start(t, program)
			return &site{servers: []*Server{s}, option: rueidis.ClientOption{InitAddress: []string{s.Address()}}}
		}}
	}
	redis, valkey := one("redis", Redis), one("valkey", Valkey)
	redis.Kind = single
	valkey.Soak, valkey.SameClients = true, true
	return []rig.Rig{
		redis, valkey,
		{
			Name: "redis-sentinel", SoakElections: true, SameClients: true, Attention: time.Second,
			Start: func(t testing.TB, _ bool) rig.Site { return guarded(StartGroup(t, 1)) },
		},
		{
			Name: "redis-cluster", SoakElections: true, SoakFaults: true, SameClients: true,
			Start: func(t testing.TB, _ bool) rig.Site { return clustered(StartCluster(t, false)) },
		},
		{
			Name: "redis-cluster-replicas", Soak: true, SameClients: true, Attention: time.Second,
			Start: func(t testing.TB, _ bool) rig.Site { return replicated(StartCluster(t, true)) },
		},
	}
}

// site is servers with the options of their clients.
type site struct {
	servers []*Server
	option  rueidis.ClientOption
	opts    []redisstore.Option
	faults  []rig.Fault
}

// Open connects through a relay to each server.
func (s *site) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	var addresses []string
	for _, one := range s.servers {
		addresses = append(addresses, one.Address())
	}
	way, err := relay.NewSet(addresses)
	rig.Must(t, err)
	t.Cleanup(way.Close)
	return s.open(t, way.Via()), way
}

func (s *site) open(t testing.TB, via map[string]string) driver.Store {
	t.Helper()
	option := s.option
	option.DialCtxFn = dialer(via)
	var store *redisstore.Store
	wait.Succeeds(t, "a store", func(ctx context.Context) (err error) {
		store, err = redisstore.Open(ctx, option, s.opts...)
		return err
	})
	t.Cleanup(func() { rig.Must(t, store.Close()) })
	return store
}

// dialer dials the relay of an address, if there is one.
func dialer(via map[string]string) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", cmp.Or(via[address], address))
	}
}

// Kit removes keys. An operator's removal publishes nothing, so this one does.
func (s *site) Kit(t testing.TB) drivertest.Harness {
	option := s.option
	option.DisableCache = true
	var c rueidis.Client
	wait.Succeeds(t, "an operator", func(context.Context) (err error) {
		c, err = rueidis.NewClient(option)
		return err
	})
	t.Cleanup(c.Close)
	remove := func(ctx context.Context, key string) error {
		if err := c.Do(ctx, c.B().Del().Key("tenure:"+key).Build()).Error(); err != nil {
			return err
		}
		return c.Do(ctx, c.B().Publish().Channel("tenure:changes:0").Message(key).Build()).Error()
	}
	h := drivertest.Harness{Delete: remove, Purge: remove, FloorTick: time.Microsecond}
	h.Recreate = func(ctx context.Context) error {
		for _, one := range c.Nodes() {
			if err := one.Do(ctx, one.B().Flushall().Build()).Error(); err != nil && redisstore.Code(err) != "READONLY" {
				return err
			}
		}
		return nil
	}
	if len(s.servers) == 1 {
		h.Denied = s.denied(t)
	}
	return h
}

// denied is a client without rights.
func (s *site) denied(t testing.TB) driver.Store {
	_, err := s.servers[0].Do(wait.Context(t), "ACL", "SETUSER", "nobody", "on", ">nothing", "-@all", "+ping")
	rig.Must(t, err)
	option := s.option
	option.Username, option.Password = "nobody", "nothing"
	store, err := redisstore.Open(wait.Context(t), option)
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, store.Close()) })
	return store
}

// Faults returns those of one server, or of the group. A server that starts again, or is promoted,
// is another era.
func (s *site) Faults() []rig.Fault {
	all := s.faults
	if len(s.servers) == 1 {
		all = rig.Of(func(*rand.Rand) rig.Server { return s.servers[0] }, 8)
	}
	for i := range all {
		all[i].Rules.Era = history.EraAtTheEnd
	}
	return all
}

// Restores is for one server: a member of a group gets its data from the others.
func (s *site) Restores() bool { return len(s.servers) == 1 }

// Backup copies the files of the server, as a snapshot of its disk does.
func (s *site) Backup(t testing.TB) func() {
	server, saved := s.servers[0], filepath.Join(t.TempDir(), "saved")
	data := filepath.Join(server.Dir, "appendonlydir")
	rig.Must(t, os.CopyFS(saved, os.DirFS(data)))
	return func() {
		rig.Must(t, server.Stop())
		rig.Must(t, os.RemoveAll(data))
		rig.Must(t, os.CopyFS(data, os.DirFS(saved)))
		rig.Must(t, server.Start())
	}
}

// Until waits until a server's INFO has a line.
func (s *Server) Until(t testing.TB, section, line string) {
	t.Helper()
	wait.Succeeds(t, line, func(ctx context.Context) error {
		text, err := s.Do(ctx, "INFO", section)
		if err == nil && !hasLine(text, line) {
			err = fmt.Errorf("no line %s in %s", line, text)
		}
		return err
	})
}
