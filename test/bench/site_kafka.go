package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The modes of Kafka: the log alone, or with a consumer group that nominates. The nominee has
// precedence, or it alone is ever elected, as with goNELI.
var (
	logMode = mode{name: "log", requests: renewals}
	// grouped has sessions that are short enough for many runs, and longer than the delay of a
	// heartbeat on a busy machine.
	grouped    = groupMode("group", always(2*time.Second))
	precedence = groupMode("precedence", goneliSession)
	onlyMode   = groupMode("nominee only", goneliSession)

	goneliSession = choice[time.Duration]{2 * time.Second, 15 * time.Second}
)

func groupMode(name string, session choice[time.Duration]) mode {
	return mode{name: name, session: session, rest: 3 * settle, requests: renewals}
}

// renewals are the only necessary requests. The total is the number of goNELI's requests.
var renewals = budget{"Produce": 12, total: 1334}

const goneliCrash, goneliStop = "goNELI 13.6 s median", "goNELI 142 ms to close"

// kafkaSite is three real brokers. A quick run without -brokers uses kfake instead.
var kafkaSite = site{
	name: "kafka", title: "Kafka", start: startBrokers, connect: connectLog,
	rows: func() []experiment {
		lease, modes := always(time.Second), []mode{logMode, grouped}
		strikes := strike{modes: modes, groups: choice[int]{2, 5}, rounds: choice[int]{1, 10}}
		return []experiment{
			operations{n: choice[int]{200, 2000}, swap: figures.Bound{Median: 5 * time.Millisecond}},
			crash{modes: []mode{logMode}, lease: lease, groups: always(3), rounds: choice[int]{1, 20},
				late: figures.Bound{Median: 100 * time.Millisecond}, others: goneliCrash},
			stops{of: []stopping{{rounds: choice[int]{50, 1000}}}, lease: lease, others: goneliStop,
				late: figures.Bound{Median: 15 * time.Millisecond, P99: 50 * time.Millisecond}},
			steady{lease: always(15 * time.Second), window: choice[int]{1, 8},
				modes: []mode{logMode, groupMode("group", always(15*time.Second))},
				note: "Requests are counted when the processes write them to connections. With a group, " +
					"sessions are 15 s. A fetch ends with a record or after 5 s. goNELI's figure is with " +
					"its defaults",
				others: "goNELI 1334"},
			crowd{modes: []mode{logMode, groupMode("group", always(15*time.Second))},
				elections: []int{200, 20},
				window:    choice[int]{3, 30}, others: "goNELI 24 MB and 8 threads"},
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
			operations{n: choice[int]{1000, 5000}, swap: figures.Bound{Median: 150 * time.Microsecond}},
		}
	},
}

// brokers is the servers of Kafka. They are numbered from 0.
type brokers struct {
	seeds []string
	end   func()
	// leader returns the broker that leads a topic, and coordinator the one that coordinates a
	// group.
	leader, coordinator func(ctx context.Context, name string) int
	homes               []string // the topics of createAt
}

func startFake(*bench, string) servers {
	c := must(kfake.NewCluster(kfake.NumBrokers(kafkad.Brokers),
		kfake.GroupMinSessionTimeout(time.Second)))
	return &brokers{seeds: c.ListenAddrs(), end: c.Close,
		leader:      func(_ context.Context, topic string) int { return int(c.LeaderFor(topic, 0)) },
		coordinator: func(_ context.Context, group string) int { return int(c.CoordinatorFor(group)) }}
}

func (k *brokers) self() *brokers { return k }

func (k *brokers) addresses() []string { return k.seeds }

func (k *brokers) stop() { k.end() }

func (k *brokers) create(ctx context.Context, topic string) {
	s, err := kafkalog.Open(ctx, []kgo.Opt{kgo.SeedBrokers(k.seeds...)}, topic,
		kafkalog.WithTimeout(attempt)) // brokers that have just started are slow
	check(err)
	check(s.Close())
}

// realBrokers can fail. The cluster numbers them from 1.
type realBrokers struct {
	*brokers
	cluster *kafkad.Cluster
}

// startBrokers warms real brokers up: Java compiles what runs often.
func startBrokers(b *bench, dir string) servers {
	if b.quick && !b.options.brokers {
		return startFake(b, dir)
	}
	c := must(kafkad.Up(b.ctx, dir, false))
	k := &brokers{seeds: c.Seeds(), end: func() { _ = c.End() },
		leader:      func(ctx context.Context, t string) int { return must(c.LeaderOf(ctx, t)) - 1 },
		coordinator: func(ctx context.Context, g string) int { return must(c.CoordinatorOf(ctx, g)) - 1 }}
	_, err := b.try(&site{connect: connectLog}, func(t *trial) {
		k.create(b.ctx, "warm")
		measureOperations(t, t.open(k, "warm"), pick(b, choice[int]{1000, 2000}))
	})
	if err != nil {
		k.end()
		check(err)
	}
	return realBrokers{k, c}
}

func (k realBrokers) createAt(ctx context.Context, topic string, home int) {
	k.create(ctx, topic)
	k.homes = append(k.homes, topic)
	check(k.cluster.Prefer(ctx, topic, home+1))
	k.restore(ctx)
}

func (k realBrokers) faults() []serverFault {
	broker := func(do func(int) error) func(int) error {
		return func(i int) error { return do(i + 1) }
	}
	heal := func(int) error { return nil } // whole starts and continues all brokers
	return []serverFault{{"shut down", broker(k.cluster.Stop), heal},
		{"killed", broker(k.cluster.Kill), heal}, {"frozen", broker(k.cluster.Pause), heal}}
}

func (k realBrokers) whole(ctx context.Context) { check(k.cluster.Heal(ctx)) }

func (k realBrokers) restore(ctx context.Context) { check(k.cluster.Restore(ctx, k.homes...)) }

func (k realBrokers) controller(ctx context.Context) int {
	return must(k.cluster.Controller(ctx)) - 1
}

// logClient counts the requests of all clients.
type logClient struct{ observer }

func connectLog(o observer) (client, error) { return &logClient{o}, nil }

// connection returns the options of all clients of this process.
func (l *logClient) connection() []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(l.me.Addresses...), kgo.ClientID(l.me.ID), kgo.WithHooks(l),
		kgo.Dialer(l.me.DialContext)}
}

// OnBrokerWrite counts a request.
func (l *logClient) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int,
	_, _ time.Duration, err error) {
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

// configure makes a consumer group of the election's name nominate, until the campaign ends.
func (l *logClient) configure(ctx context.Context, c command, election string,
	cfg *tenure.Config) error {
	if c.Session == 0 {
		return nil
	}
	g, err := group.Join(ctx, l.connection(), group.Config{Name: election, SessionTimeout: c.Session})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = g.Close() })
	cfg.Nominator, cfg.NomineeOnly = g, l.me.Mode == onlyMode.name
	cfg.Metadata = group.Metadata(election)
	return nil
}

type logObserved struct {
	*kafkalog.Store
	observer observer
}

// CompareAndSwap calls the store and reports the write.
func (o logObserved) CompareAndSwap(ctx context.Context, key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	return o.observer.swap(ctx, o.Store, key, prev, value)
}

// cutCoordinator cuts the leader off only from the coordinator of its group.
func cutCoordinator(x strike) strike {
	x.name, x.modes, x.relayed, x.lease = "coordinator", []mode{grouped}, true, time.Second
	x.title = "the leader is cut off only from the coordinator of the group that nominated it, for " +
		"two and a half sessions; bytes are lost or held as in row cut"
	x.note = "The coordinator never leads the log's partition. The control has no election: of " +
		"three consumers of franz-go, the one to which the group last gave partition 0 acts as the " +
		"leader, until the group takes the partition back"
	x.hold = func(c *team) time.Duration { return 5 * c.role.Session / 2 }
	x.hit = func(c *team, leader *member, round int) func() {
		k := kafkaOf(c)
		coordinator := k.seeds[k.coordinator(c.ctx, c.role.Elections[0])]
		return relay.Set{coordinator: leader.relays[coordinator]}.Cut(round%2 == 0)
	}
	x.begin = func(c *team) {
		separateCoordinator(c)
		c.electFirst()
	}
	x.control, x.beginControl = "consumers that go by the group alone", consumers
	return x
}

// kafkaOf returns the brokers, real or not.
func kafkaOf(c *team) *brokers { return c.servers.(interface{ self() *brokers }).self() }

// separateCoordinator renames the election until the coordinator of the group with that name does
// not lead the log.
func separateCoordinator(c *team) {
	k := kafkaOf(c)
	log := k.leader(c.ctx, c.role.Bucket)
	for range 100 {
		c.role.Elections[0] = c.unique(c.name)
		if k.coordinator(c.ctx, c.role.Elections[0]) != log {
			return
		}
	}
	check(errors.New("one broker coordinates all groups and leads the log"))
}

// consumers makes all members consume, and waits until one owns the partition and the group is
// stable.
func consumers(c *team) {
	separateCoordinator(c)
	what := c.role
	what.Do = consume
	for _, m := range c.members {
		c.tell(what, m)
		c.heard(0, nil, leads)
	}
	c.sleep(c.role.Session)
}

// owner is a planted mistake: a consumer that acts as the leader of its group as long as the group
// has not taken partition 0 from it.
type owner struct {
	say      func(report)
	election string

	mu    sync.Mutex
	token uint64 // 0 unless the member owns the partition
}

// consume joins the group of the first election. The topic must exist; its content does not matter.
func (l *logClient) consume(c command) error {
	o := &owner{say: l.say, election: c.Elections[0]}
	if0 := func(do func()) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			for _, partitions := range changed {
				if slices.Contains(partitions, 0) {
					do()
				}
			}
		}
	}
	_, err := kgo.NewClient(append(l.connection(),
		kgo.ConsumerGroup(o.election), kgo.ConsumeTopics(c.Bucket),
		kgo.SessionTimeout(c.Session), kgo.HeartbeatInterval(c.Session/5),
		kgo.OnPartitionsAssigned(if0(o.begin)), kgo.OnPartitionsRevoked(if0(o.end)),
		kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) { o.end() }))...)
	go func() {
		for range time.Tick(2 * time.Millisecond) {
			o.act(acted)
		}
	}()
	return err
}

func (o *owner) begin() {
	o.mu.Lock()
	o.token = uint64(machine.Now())
	o.mu.Unlock()
	o.act(leads)
	o.act(acted)
}

func (o *owner) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.token = 0
}

// act reports that the owner may act now.
func (o *owner) act(w what) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := machine.Now(); o.token != 0 {
		o.say(report{What: w, Election: o.election, Token: o.token, At: now, Acts: []int64{now}})
	}
}
