package kafkad

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Running are three brokers, real or not. They are numbered from 0.
type Running struct {
	rig.Server
	Cluster *Cluster // nil for kfake
	fake    *kfake.Cluster
}

var brokersKind = rig.Kind{
	Title: "three Kafka brokers", Connect: connect,
	Start: func(ctx context.Context, dir string) (rig.Running, error) {
		c, err := Up(ctx, dir)
		return Running{rig.NoServer, c, nil}, err
	},
}

// Fake is kfake in this process.
func Fake() rig.Kind {
	k := brokersKind
	k.Start = func(context.Context, string) (rig.Running, error) {
		c, err := kfake.NewCluster(kfake.NumBrokers(Brokers), kfake.GroupMinSessionTimeout(time.Second))
		return Running{rig.NoServer, nil, c}, err
	}
	return k
}

// one is one real broker.
type one struct {
	*Cluster
	n int
}

func (o one) Start() error  { return o.Cluster.Start(o.n) }
func (o one) Stop() error   { return o.Cluster.Stop(o.n) }
func (o one) Kill() error   { return o.Cluster.Kill(o.n) }
func (o one) Pause() error  { return o.Cluster.Pause(o.n) }
func (o one) Resume() error { return o.Cluster.Resume(o.n) }

// Each returns the real brokers one by one.
func (r Running) Each() (all []rig.Server) {
	for i := range Brokers {
		all = append(all, one{r.Cluster, i + 1})
	}
	return all
}

// Addresses returns HOST:PORT of each broker.
func (r Running) Addresses() []string {
	if r.fake != nil {
		return r.fake.ListenAddrs()
	}
	return r.Cluster.Seeds()
}

// End kills the brokers.
func (r Running) End() {
	if r.fake != nil {
		r.fake.Close()
		return
	}
	_ = r.Cluster.End()
}

// Create creates a topic.
func (r Running) Create(ctx context.Context, topic string) error {
	s, err := kafkalog.Open(ctx, []kgo.Opt{kgo.SeedBrokers(r.Addresses()...)}, topic,
		kafkalog.WithTimeout(time.Minute)) // brokers that have just started are slow
	if err != nil {
		return err
	}
	return s.Close()
}

// LeaderOf returns the broker that leads a topic.
func (r Running) LeaderOf(ctx context.Context, topic string) (int, error) {
	if r.fake != nil {
		return int(r.fake.LeaderFor(topic, 0)), nil
	}
	n, err := r.Cluster.LeaderOf(ctx, topic)
	return n - 1, err
}

// CoordinatorOf returns the broker that coordinates a group.
func (r Running) CoordinatorOf(ctx context.Context, group string) (int, error) {
	if r.fake != nil {
		return int(r.fake.CoordinatorFor(group)), nil
	}
	n, err := r.Cluster.CoordinatorOf(ctx, group)
	return n - 1, err
}

func connect(c rig.Connector) (rig.Opener, error) {
	return func(ctx context.Context, topic string) (driver.Store, error) {
		return kafkalog.Open(ctx, Options(c), topic)
	}, nil
}

// Options returns the options of all clients of a process.
func Options(c rig.Connector) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(c.Addresses...), kgo.ClientID(c.ID), kgo.WithHooks(requestCounter(c.Count)),
		kgo.Dialer(c.DialContext)}
}

type requestCounter func(kind string)

// OnBrokerWrite counts a request when it is written to a connection.
func (count requestCounter) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err == nil {
		count(kmsg.NameForKey(key))
	}
}
