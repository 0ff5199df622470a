package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/nomination"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rigs"
	"github.com/twmb/franz-go/pkg/kgo"
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
	name: "kafka", title: "Kafka", rig: "kafka", start: startBrokers,
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
	name: "kfake", title: "Kafka, as kfake", other: kafkad.Fake(),
	rows: func() []experiment {
		return []experiment{
			operations{n: choice[int]{1000, 5000}, swap: figures.Bound{Median: 150 * time.Microsecond}},
		}
	},
}

// startBrokers warms real brokers up: Java compiles what runs often.
func startBrokers(b *bench, dir string) rig.Running {
	if b.quick && !b.brokers {
		return must(kafkad.Fake().Start(b.ctx, dir))
	}
	on := must(rigs.Kind("kafka").Start(b.ctx, dir))
	_, err := b.try(&site{rig: "kafka"}, func(t *trial) {
		check(on.Create(b.ctx, "warm"))
		measureOperations(t, t.open(on, "warm"), pick(b, choice[int]{1000, 2000}))
	})
	if err != nil {
		on.End()
		check(err)
	}
	return on
}

// kafkaServers can fail. The cluster numbers them from 1.
type kafkaServers struct {
	kafkad.Running
	homes []string // the topics of createAt
}

func (k *kafkaServers) createAt(ctx context.Context, topic string, home int) {
	check(k.Create(ctx, topic))
	k.homes = append(k.homes, topic)
	check(k.Cluster.Prefer(ctx, topic, home+1))
	k.restore(ctx)
}

func (k *kafkaServers) faults() []serverFault {
	broker := func(do func(rig.Server) error) func(int) error {
		return func(i int) error { return do(k.Each()[i]) }
	}
	heal := func(int) error { return nil } // whole starts and continues all brokers
	return []serverFault{{"shut down", broker(rig.Server.Stop), heal},
		{"killed", broker(rig.Server.Kill), heal}, {"frozen", broker(rig.Server.Pause), heal}}
}

func (k *kafkaServers) whole(ctx context.Context) { check(k.Cluster.Heal(ctx)) }

func (k *kafkaServers) restore(ctx context.Context) { check(k.Cluster.Restore(ctx, k.homes...)) }

func (k *kafkaServers) controller(ctx context.Context) int {
	return must(k.Cluster.Controller(ctx)) - 1
}

// nominate makes a consumer group of the election's name nominate, until the campaign ends.
func (c *client) nominate(ctx context.Context, session time.Duration, election string,
	cfg *tenure.Config) error {
	g, err := group.Join(ctx, kafkad.Options(c.me.Connector), group.Config{Name: election, SessionTimeout: session})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = g.Close() })
	cfg.Nomination = nomination.By(g)
	cfg.Nomination.Only = c.me.Mode == onlyMode.name
	cfg.Metadata = group.Metadata(election)
	return nil
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
		k := c.servers.(kafkad.Running)
		coordinator := k.Addresses()[must(k.CoordinatorOf(c.ctx, c.role.Elections[0]))]
		return relay.Set{coordinator: leader.relays[coordinator]}.Cut(round%2 == 0)
	}
	x.begin = func(c *team) {
		separateCoordinator(c)
		c.electFirst()
	}
	x.control, x.beginControl = "consumers that go by the group alone", consumers
	return x
}

// separateCoordinator renames the election until the coordinator of the group with that name does
// not lead the log.
func separateCoordinator(c *team) {
	k := c.servers.(kafkad.Running)
	log := must(k.LeaderOf(c.ctx, c.role.Bucket))
	for range 100 {
		c.role.Elections[0] = c.unique(c.name)
		if must(k.CoordinatorOf(c.ctx, c.role.Elections[0])) != log {
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
func (c *client) consume(how command) error {
	o := &owner{say: c.say, election: how.Elections[0]}
	if0 := func(do func()) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			for _, partitions := range changed {
				if slices.Contains(partitions, 0) {
					do()
				}
			}
		}
	}
	_, err := kgo.NewClient(append(kafkad.Options(c.me.Connector),
		kgo.ConsumerGroup(o.election), kgo.ConsumeTopics(how.Bucket),
		kgo.SessionTimeout(how.Session), kgo.HeartbeatInterval(how.Session/5),
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
