package natsd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// single is one server, for programs.
var single = rig.Kind{
	Title:   "one NATS server process (file storage, one replica) over loopback and a relay for each candidate",
	URL:     func(address string) string { return scheme + address + "/ELECTIONS?pristine=true" },
	Connect: dial,
	Start: func(_ context.Context, dir string) (rig.Running, error) {
		s, err := Start(dir)
		if err != nil {
			return nil, err
		}
		return Running{control{s}, []*Server{s}, nil}, nil
	},
}

// Clustered is a cluster for programs, which one of these functions starts: StartCluster or
// StartPartible.
func Clustered(start func(dir string) (*Cluster, error)) rig.Kind {
	return rig.Kind{
		Title: "three NATS servers", Connect: dial,
		Start: func(ctx context.Context, dir string) (rig.Running, error) {
			c, err := start(dir)
			if err != nil {
				return nil, err
			}
			if err := c.Ready(ctx); err != nil {
				c.Kill()
				return nil, err
			}
			return Running{rig.NoServer, c.Servers[:], c}, nil
		},
	}
}

// Alone starts one server for the length of a test.
func Alone(t testing.TB) *Server {
	t.Helper()
	s, err := Start(t.TempDir())
	rig.Must(t, err)
	t.Cleanup(s.Kill)
	return s
}

const scheme = "nats://"

// Running is one server, or a cluster.
type Running struct {
	rig.Server
	All     []*Server
	Cluster *Cluster // nil for one server
}

// Addresses returns HOST:PORT of each server.
func (r Running) Addresses() (all []string) {
	for _, s := range r.All {
		all = append(all, strings.TrimPrefix(s.URL(), scheme))
	}
	return all
}

// Member is one server of a cluster.
type Member struct {
	control
	cluster *Cluster
}

// Part cuts the server off from the others, and Heal ends that.
func (m Member) Part() { m.cluster.Part(m.Server) }

// Heal is described at Part.
func (m Member) Heal() { m.cluster.Heal(m.Server) }

// Each returns the servers of a cluster one by one.
func (r Running) Each() (all []rig.Server) {
	for _, s := range r.All {
		all = append(all, Member{control{s}, r.Cluster})
	}
	return all
}

// URLs returns the URLs of the servers, separated by commas.
func (r Running) URLs() string { return urls(r.Addresses()) }

func urls(addresses []string) string { return scheme + strings.Join(addresses, ","+scheme) }

// Create creates a bucket with a replica on each server.
func (r Running) Create(ctx context.Context, bucket string) error {
	err := ask(ctx, strings.Split(r.URLs(), ","), "create "+bucket, func(ctx context.Context, js jetstream.JetStream) error {
		_, err := natskv.Open(ctx, js, bucket, natskv.Create(natskv.Replicas(len(r.All))))
		return err
	})
	if err != nil || r.Cluster == nil {
		return err
	}
	return r.Cluster.Whole(ctx, "KV_"+bucket)
}

// End kills the servers.
func (r Running) End() {
	if r.Cluster != nil {
		r.Cluster.Kill()
		return
	}
	r.All[0].Kill()
}

// dial opens one connection. With a cluster, only the elections use it.
func dial(c rig.Connector) (rig.Opener, error) {
	name, opts := c.ID, []natskv.Option{natskv.Pristine()}
	if len(c.Addresses) > 1 {
		name, opts = name+" (base)", append(opts, natskv.OwnConnection(nats.Name(name)))
	}
	nc, err := nats.Connect(urls(c.Addresses), nats.Name(name), nats.DontRandomize(),
		nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.SetCustomDialer(c))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	return func(ctx context.Context, bucket string) (driver.Store, error) {
		return natskv.Open(ctx, js, bucket, opts...)
	}, err
}
