// Package group lets a consumer group of Kafka nominate the leader of an election. Use it if
// something else depends on the owner of a partition, if operators move leadership through the
// group, or in place of goNELI, a library that elects by a consumer group.
//
//	g, err := group.Join(ctx, connection, group.Config{Name: "billing"})
//	cfg := tenure.Config{Nomination: nomination.By(g), Metadata: group.Metadata("billing")}
//	e, err := tenure.New(store, "billing", cfg)
//
// All candidates join one group; the owner of partition 0 of its topic is the nominee. The first
// member gets the partition and keeps it when others join or leave. The partition goes to another
// member when its owner leaves ([Group.Close]) or is silent for SessionTimeout.
//
// # It is not a lease
//
// Brokers give a silent owner's partition to the next owner without the first one's consent, and
// the first one learns of that only when it reaches them again. So two members may be the nominee
// at once, or none. Neither does harm: the election's lease decides which member leads, and a
// nomination only orders the claims. If a group is stuck, the election has no nominee. The
// candidates then claim without one after nomination.Config.Precedence; with Only they wait without
// limit.
//
// # When a nomination ends
//
// It ends with the first of these events:
//   - the group gives the partition to another member, or removes this member;
//   - 19/20 of SessionTimeout have passed since this member sent the last request that the
//     coordinator answered as to a member. Of this machine's monotonic clock and wall clock, the
//     one that moved further counts;
//   - Close.
//
// Only an answered heartbeat resumes a nomination that ended by time. A process that was stopped
// finds it ended when it goes on. The leader is then asked to finish (nomination.ErrWithdrawn) and
// releases its lease; the group does not wait for that. The next owner is named at once and is
// elected when the lease is released or over: the lease keeps terms apart, and the group need not
// wait. In goNELI a callback that blocks makes the group wait instead, and if it blocks for too
// long, the group names the next owner all the same.
//
// # What it does not do
//
// Nothing is consumed, committed or written, and no offsets are looked up. The topic may have any
// number of partitions, any retention and cleanup, and may be deleted at any time: the subscription
// only names it. Members of one group must name the same one. Ordinary consumers, goNELI's among
// them, cannot be members of the same group: the brokers refuse the kind that comes second, and
// Join reports that.
//
// # Rights
//
// A member needs Read on the group and Describe on the topic; Create on the topic lets Join create
// it.
//
// # Cost
//
// A member is one client, three goroutines of its own and a request every Heartbeat.
// docs/adr/0009-kafka-group.md has the figures, and explains why this package joins the group with
// its own requests and not through the library's consumer.
package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/tenure-go/tenure/nomination"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Group is one member of a consumer group. All methods may be called concurrently.
type Group struct {
	cfg         Config
	client      *kgo.Client
	coordinator *coordinator
	nominee     *nominee

	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	work   sync.WaitGroup
	closed sync.Once
	gone   error // the result of Close

	rejoin chan struct{} // capacity 1: the group must be joined again
	hurry  chan struct{} // capacity 1: see Vacant
	// closed when the coordinator has first accepted this process as a future member
	met chan struct{}

	mu      sync.Mutex
	member  identity
	joining bool      // a join is on its way, so an old generation is no surprise
	trouble error     // the last request's
	vacant  time.Time // since when there is no leader; zero while there is one
}

var (
	_ nomination.VacancyListener = (*Group)(nil)
	_ nomination.Gate            = (*Group)(nil)
)

// identity is the coordinator's name for this member.
type identity struct {
	id         string
	generation int32
}

var nobody = identity{generation: -1}

func newGroup(client *kgo.Client, cfg Config) *Group {
	g := &Group{
		cfg:         cfg,
		client:      client,
		coordinator: &coordinator{client: client, group: cfg.Name, timeout: cfg.timeout()},
		nominee:     newNominee(cfg.SessionTimeout-cfg.margin(), cfg.BesideGoNELI),
		rejoin:      make(chan struct{}, 1),
		hurry:       make(chan struct{}, 1),
		met:         make(chan struct{}),
		member:      nobody,
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	return g
}

// Name returns the consumer group's name.
func (g *Group) Name() string { return g.cfg.Name }

// Nominate calls see once soon, and then after each change of Nominated or MayLead, until stop is
// called. The argument is the result of Nominated. Calls do not overlap. A see that blocks delays
// the see functions of other calls of Nominate, and nothing else: neither the group nor the end of
// the nomination waits for it.
func (g *Group) Nominate(see func(nominated bool)) (stop func()) { return g.nominee.watch(see) }

// Nominated reports whether this member is the nominee, by the clock at the time of the question.
func (g *Group) Nominated() bool { return g.nominee.now() }

// MayLead implements nomination.Gate: with Config.BesideGoNELI a candidate that is not the nominee
// may lead only while the coordinator confirms that it is a member; without, always.
func (g *Group) MayLead() bool { return g.nominee.mayLead() }

// Err returns the present error of the membership, or nil. The member goes on trying after any
// error, unless it is a fenced static member.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trouble
}

// Vacant implements nomination.VacancyListener. An election calls it if this is its Nominator.
// While there is no leader, and for two sessions at most, this member sends a heartbeat at once,
// after 5 ms, and then after pauses that double up to an eighth of Heartbeat. Without it a member
// notices within a Heartbeat that another one left, and the next owner is named when all have
// noticed.
func (g *Group) Vacant(vacant bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vacant = time.Time{}
	if vacant {
		g.vacant = time.Now()
		raise(g.hurry)
	}
}

// Close ends the nomination, leaves the group so that the next owner is named at once, and closes
// the client. It takes as long as one request may take: a tenth of SessionTimeout, at least 200 ms
// and at most 2 s. A leader by this nomination should finish first; closing the group ends no
// lease. A static member does not leave.
//
// It returns an error if the coordinator was not reached; the group then waits for the
// SessionTimeout. It may be called more than once.
func (g *Group) Close() error {
	g.closed.Do(func() {
		g.nominee.end()
		g.stop()
		g.work.Wait()
		g.gone = g.leave()
		g.client.Close()
	})
	return g.gone
}

func (g *Group) now() identity {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.member
}

// become sets the identity; with another one, or none, the place in the group and its partition are
// lost.
func (g *Group) become(m identity) {
	g.mu.Lock()
	kept := m.id == g.member.id
	g.member = m
	g.mu.Unlock()
	if !kept {
		g.nominee.lose()
	}
}

// note keeps an error, and logs it once.
func (g *Group) note(doing string, err error) {
	if g.ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	before := g.trouble
	g.trouble = err
	g.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		g.cfg.Logger.Warn("the consumer group does not work", "doing", doing, "error", err)
	case err == nil && before != nil:
		g.cfg.Logger.Info("the consumer group works again")
	}
}

// raise sets a flag that is a channel.
func raise(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

// sleep ends early with the context.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// Bounds and defaults of Config.
const (
	defaultSession = 15 * time.Second
	shortSession   = time.Second
	longSession    = 30 * time.Minute
	shortHeartbeat = 50 * time.Millisecond
	maxName        = 249
)

// Config says which group to join. The zero value is usable.
//
//	Name            the program's file name       1 to 249 of a-z A-Z 0-9 . _ -
//	Topic           Name + ".neli"                likewise
//	SessionTimeout  15 s                          1 s to 30 min, and what the brokers allow
//	Heartbeat       SessionTimeout / 5            50 ms to SessionTimeout / 3
//	Replicas        three, or all brokers where there are fewer
//	NoCreate        false
//	BesideGoNELI    false
//	Instance        none                          as Name
//	Logger          discards
type Config struct {
	// Name is the consumer group's name, which all candidates of one election share, and no other
	// program. In the default, characters that Kafka does not allow are replaced by underscores.
	Name string
	// Topic is the topic that the group subscribes to. Nothing is written to it or read from it:
	// any topic works, with any partitions, retention and cleanup. One that does not exist is
	// created with one partition.
	Topic string
	// SessionTimeout is how long the brokers leave the nomination to a silent member. Brokers allow
	// 6 s to 30 min unless they are configured otherwise.
	SessionTimeout time.Duration
	// Heartbeat is the time between two requests of a member. It is also how late a member notices
	// that another one left.
	Heartbeat time.Duration
	// Replicas is how many brokers keep a topic that Join creates.
	Replicas int
	// NoCreate makes Join fail where the topic does not exist.
	NoCreate bool
	// BesideGoNELI says that processes of another kind may be in the group, or join it. Such
	// processes, as goNELI's, lead by owning partition 0 and do not know the election's log. Then a
	// candidate that is not the nominee claims only while the coordinator confirms that it is a
	// member: during that time brokers admit no other kind. A coordinator that does not answer
	// counts as a group of the other kind, so no candidate is elected without it, whatever
	// Precedence is. A leader that is no longer a member is asked to finish.
	BesideGoNELI bool
	// Instance makes this a static member, by a name that no other member has (Kafka calls it
	// group.instance.id). It does not leave the group in Close. A process that joins under the same
	// name within SessionTimeout has its place, and so its nomination. The group does not rebalance
	// for that, unless a rebalance is already under way. So a restart does not move the nomination,
	// and a permanent stop does so only after SessionTimeout. Of two processes with one name the
	// first is out.
	Instance string
	// Logger gets messages about changes and trouble.
	Logger *slog.Logger
}

// settle returns the config with its defaults, or an error.
func (c Config) settle() (Config, error) {
	if c.Name == "" {
		c.Name = legal(filepath.Base(os.Args[0]))
	}
	if c.Topic == "" {
		c.Topic = c.Name + ".neli"
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = defaultSession
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = c.SessionTimeout / 5
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("group", c.Name)
	return c, c.check()
}

func (c Config) check() error {
	bad := []error{checkName("Name", c.Name), checkName("Topic", c.Topic)}
	if c.Instance != "" {
		bad = append(bad, checkName("Instance", c.Instance))
	}
	if c.SessionTimeout < shortSession || c.SessionTimeout > longSession {
		bad = append(bad, fmt.Errorf("SessionTimeout %v is not between %v and %v", c.SessionTimeout, shortSession, longSession))
	}
	if c.Heartbeat < shortHeartbeat || c.Heartbeat > c.SessionTimeout/3 {
		bad = append(bad, fmt.Errorf("Heartbeat %v is not between %v and a third of SessionTimeout, %v", c.Heartbeat, shortHeartbeat, c.SessionTimeout/3))
	}
	if c.Replicas < 0 {
		bad = append(bad, fmt.Errorf("Replicas is %d; it must not be negative", c.Replicas))
	}
	return errors.Join(bad...)
}

func checkName(field, name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%s has %d bytes, not 1 to %d", field, len(name), maxName)
	case name != legal(name):
		return fmt.Errorf("%s %q has other characters than a-z A-Z 0-9 . _ -", field, name)
	}
	return nil
}

// legal replaces characters that a topic's name may not have.
func legal(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// margin is the part of the session that a nominee does not use, so that its nomination is over
// before the coordinator can name another: for clocks that run apart and timers that fire late.
func (c Config) margin() time.Duration { return c.SessionTimeout / 20 }

// timeout is the coordinator's time for an answer that does not depend on other members.
func (c Config) timeout() time.Duration {
	return max(200*time.Millisecond, min(c.SessionTimeout/10, 2*time.Second))
}

// pause is how long to wait after a request that failed.
func (c Config) pause() time.Duration { return min(c.Heartbeat/5, time.Second/2) }

// seeTopic makes sure that the topic exists.
func (g *Group) seeTopic(ctx context.Context) error {
	err := g.look(ctx)
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return err
	}
	if g.cfg.NoCreate {
		return fmt.Errorf("it does not exist, and is not to be created: %w", err)
	}
	return g.create(ctx)
}

func (g *Group) look(ctx context.Context) error {
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &g.cfg.Topic
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, topic)
	answer, err := req.RequestWith(ctx, g.client)
	if err != nil {
		return err
	}
	if len(answer.Topics) != 1 {
		return broker.ErrAnswer
	}
	err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("grant Describe on it: %w", err)
	}
	return err
}

// create makes the topic. Another process may be doing the same.
func (g *Group) create(ctx context.Context) error {
	t := broker.Topic{Name: g.cfg.Topic, Replicas: g.cfg.Replicas}
	if err := t.Create(ctx, g.client, g.cfg.timeout()); err != nil {
		return err
	}
	return g.appear(ctx)
}

// appear waits until the asked broker knows the topic.
func (g *Group) appear(ctx context.Context) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second/2) {
		err := g.look(ctx)
		if err == nil || !kerr.IsRetriable(err) {
			return err
		}
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
