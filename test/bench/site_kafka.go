package main

import (
	"context"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The modes of Kafka: log alone, or with a consumer group that nominates. A nominee has precedence,
// or nobody else is ever elected, which is goNELI's meaning.
var (
	logMode = mode{name: "log"}
	// grouped has sessions that are short enough for many runs, and longer than a heartbeat waits on
	// a busy machine.
	grouped    = groupMode("group", always(2*time.Second))
	precedence = groupMode("precedence", goneliSession)
	onlyMode   = groupMode("nominee only", goneliSession)

	goneliSession = choice[time.Duration]{2 * time.Second, 15 * time.Second}
)

func groupMode(name string, session choice[time.Duration]) mode {
	return mode{name: name, session: session, rest: 3 * settle}
}

const goneliCrash, goneliStop = "goNELI 13.6 s median", "goNELI 142 ms to close"

// kafkaSite is three real brokers; in a quick run kfake, unless -brokers is set.
var kafkaSite = site{
	name: "kafka", title: "Kafka", start: startBrokers, connect: connectLog, rows: func() []experiment {
		lease, modes := always(time.Second), []mode{logMode, grouped}
		renewals := budget{"Produce": 12, total: 1334}
		strikes := strike{modes: modes, groups: choice[int]{2, 5}, rounds: choice[int]{1, 10}}
		return []experiment{
			operations{n: choice[int]{200, 2000}, swap: within{median: 5 * time.Millisecond}},
			crash{lease: lease, groups: always(3), rounds: choice[int]{1, 20},
				late: within{median: 100 * time.Millisecond}, others: goneliCrash},
			stops{of: []stopping{{rounds: choice[int]{50, 1000}}}, lease: lease, others: goneliStop,
				late: within{median: 15 * time.Millisecond, p99: 50 * time.Millisecond}},
			steady{lease: always(15 * time.Second), window: choice[int]{1, 8}, of: []quiet{
				{logMode, renewals}, {groupMode("group", always(15*time.Second)), renewals}},
				note: "Requests as the processes write them to connections; with a group, sessions are 15 s. " +
					"A fetch ends with a record or after 5 s. goNELI's figure is with its defaults",
				others: "goNELI 1334"},
			crowd{of: []gathering{{mode: logMode, elections: 200},
				{mode: groupMode("group", always(15*time.Second)), elections: 20}},
				window: choice[int]{3, 30}, others: "goNELI 24 MB and 8 threads"},
			crash{prefix: "group-", modes: []mode{precedence, onlyMode}, groups: choice[int]{1, 3},
				lease: choice[time.Duration]{time.Second, 5 * time.Second}, rounds: choice[int]{1, 5},
				others: goneliCrash},
			stops{prefix: "group-", of: []stopping{{mode: onlyMode, rounds: choice[int]{3, 50}}},
				lease: choice[time.Duration]{time.Second, 5 * time.Second}, others: goneliStop},
			cut(strikes),
			pause(strikes),
			cutCoordinator(strikes),
			faults{away: choice[time.Duration]{0, 15 * time.Second}},
		}
	},
}

// kfakeSite is kfake in the process of the bench.
var kfakeSite = site{
	name: "kfake", title: "Kafka, as kfake", start: startFake, connect: connectLog,
	rows: func() []experiment {
		return []experiment{
			operations{n: choice[int]{1000, 5000}, swap: within{median: 150 * time.Microsecond}},
		}
	},
}

// brokers are the servers of Kafka. They are numbered from 0.
type brokers struct {
	seeds []string
	end   func()
	// leader leads a topic, and coordinator coordinates a group.
	leader, coordinator func(ctx context.Context, name string) int
}

func startFake(*bench, string) servers {
	c := must(kfake.NewCluster(kfake.NumBrokers(kafkad.Brokers), kfake.GroupMinSessionTimeout(time.Second)))
	return &brokers{c.ListenAddrs(), c.Close,
		func(_ context.Context, topic string) int { return int(c.LeaderFor(topic, 0)) },
		func(_ context.Context, group string) int { return int(c.CoordinatorFor(group)) }}
}

func (k *brokers) addresses() []string { return k.seeds }

func (k *brokers) stop() { k.end() }

func (k *brokers) create(ctx context.Context, topic string) {
	s, err := kafkalog.Open(ctx, []kgo.Opt{kgo.SeedBrokers(k.seeds...)}, topic,
		kafkalog.WithTimeout(attempt)) // brokers that have just started are slow
	check(err)
	check(s.Close())
}

func (k *brokers) open(ctx context.Context, topic string) driver.Store {
	return must(kafkalog.Open(ctx, []kgo.Opt{kgo.SeedBrokers(k.seeds...)}, topic))
}

// realBrokers can fail. The cluster numbers them from 1.
type realBrokers struct {
	*brokers
	cluster *kafkad.Cluster
	homes   *[]string // the topics of createAt
}

// startBrokers warms real brokers up: Java compiles what runs often.
func startBrokers(b *bench, dir string) servers {
	if b.quick && !b.options.brokers {
		return startFake(b, dir)
	}
	c := must(kafkad.Up(b.ctx, dir, false))
	k := &brokers{c.Seeds(), func() { _ = c.End() },
		func(ctx context.Context, topic string) int { return must(c.LeaderOf(ctx, topic)) - 1 },
		func(ctx context.Context, group string) int { return must(c.CoordinatorOf(ctx, group)) - 1 }}
	_, err := b.try(nil, func(t *trial) {
		k.create(b.ctx, "warm")
		measureOperations(t, t.open(k, "warm"), pick(b, choice[int]{1000, 2000}))
	})
	if err != nil {
		k.end()
		check(err)
	}
	return realBrokers{k, c, &[]string{}}
}

func (k realBrokers) createAt(ctx context.Context, topic string, home int) {
	k.create(ctx, topic)
	*k.homes = append(*k.homes, topic)
	check(k.cluster.Prefer(ctx, topic, home+1))
	k.restore(ctx)
}

func (k realBrokers) faults() []serverFault {
	broker := func(do func(int) error) func(int) error {
		return func(i int) error { return do(i + 1) }
	}
	heal := func(int) error { return nil } // whole brings all brokers back
	return []serverFault{{"shut down", broker(k.cluster.Stop), heal},
		{"killed", broker(k.cluster.Kill), heal}, {"frozen", broker(k.cluster.Pause), heal}}
}

func (k realBrokers) whole(ctx context.Context) { check(k.cluster.Heal(ctx)) }

func (k realBrokers) restore(ctx context.Context) { check(k.cluster.Restore(ctx, *k.homes...)) }

func (k realBrokers) controller(ctx context.Context) int { return must(k.cluster.Controller(ctx)) - 1 }

// logClient counts the requests of all clients.
type logClient struct{ observer }

func connectLog(o observer) (client, error) { return &logClient{o}, nil }

// connection is how all clients of this process connect.
func (l *logClient) connection() []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(l.me.Addresses...), kgo.ClientID(l.me.ID), kgo.WithHooks(l),
		kgo.Dialer(l.me.DialContext)}
}

// OnBrokerWrite counts a request.
func (l *logClient) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err == nil {
		l.count(kmsg.NameForKey(key))
	}
}

func (l *logClient) open(c command) (driver.Store, error) {
	store, err := kafkalog.Open(context.Background(), l.connection(), c.Bucket)
	if err != nil || c.Quiet {
		return store, err
	}
	return logObserved{store, l.observer}, nil
}

// configure lets a consumer group of the election's name nominate. It ends with the campaign.
func (l *logClient) configure(ctx context.Context, c command, election string, cfg *tenure.Config) error {
	if c.Session == 0 {
		return nil
	}
	g, err := group.Join(ctx, l.connection(), group.Config{Name: election, SessionTimeout: c.Session})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = g.Close() })
	cfg.Nominator, cfg.NomineeOnly, cfg.Metadata = g, l.me.Mode == onlyMode.name, group.Metadata(election)
	return nil
}

type logObserved struct {
	*kafkalog.Store
	observer observer
}

// CompareAndSwap is the store's, and is reported.
func (o logObserved) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return o.observer.swap(ctx, o.Store, key, prev, value)
}
