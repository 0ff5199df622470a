package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/kafkalog/fenced"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The next leader waits for the end of shortLease. It is the same for all members of an election,
// and shorter than clients wait for a delayed answer. Outside bubbles leases are longer, on clocks
// that tests put forward.
const shortLease = 4 * time.Second

// scene is a cluster, of either kind, with its own topic to write to.
type scene struct {
	testing.TB
	seeds []string
	topic string
	dial  dialing // in virtual time; else nil
}

// fencedScenes are the tests for every cluster, each in its own topic.
func fencedScenes() map[string]func(*testing.T, scene) {
	return map[string]func(*testing.T, scene){
		"Writes":              fencedWrites,
		"LateProduce":         fencedLateProduce,
		"LateCommit":          fencedLateCommit,
		"CommitBeforeOpen":    fencedCommitBeforeOpen,
		"LateInit":            fencedLateInit,
		"LateInitInTheMidst":  fencedLateInitInTheMidst,
		"PausedInOpen":        fencedPausedInOpen,
		"PausedBeforeCommit":  fencedPausedBeforeCommit,
		"Rivals":              fencedRivals,
		"UnknownCommit":       fencedUnknownCommit,
		"RefusedAfterApplied": fencedRefusedAfterApplied,
		"AllOrNone":           fencedAllOrNone,
		"TooLate":             fencedTooLate,
		"Close":               fencedClose,
	}
}

func TestFenced(t *testing.T) {
	for name, run := range fencedScenes() {
		t.Run(name, func(t *testing.T) {
			sceneInBubble(t, func(t *testing.T, b scene) {
				b.makeTopic(1)
				run(t, b)
			})
		})
	}
}

// sceneInBubble has a scene with its own cluster in virtual time.
func sceneInBubble(t *testing.T, test func(*testing.T, scene)) {
	t.Helper()
	inBubble(t, 1, func(t *testing.T, c *cluster) { test(t, c.scene(fresh("written"))) })
}

// scene writes to a topic of this cluster.
func (c *cluster) scene(topic string) scene { return scene{c.tb, c.ListenAddrs(), topic, c.dial} }

func (b scene) dialing() dialing {
	if b.dial != nil {
		return b.dial
	}
	return (&net.Dialer{}).DialContext
}

// client returns a client without a gate.
func (b scene) client(opts ...kgo.Opt) *kgo.Client {
	b.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.seeds...), kgo.Dialer(b.dialing()))...)
	if err != nil {
		b.Fatal(err)
	}
	return client
}

func (b scene) makeTopic(partitions int32) {
	b.Helper()
	client := b.client()
	defer client.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = b.topic, partitions, -1
	req.Topics = append(req.Topics, made)
	if _, err := req.RequestWith(within(b), client); err != nil {
		b.Fatal(err)
	}
}

// contest is an election with a leader that can be cut off, and a next leader.
type contest struct {
	scene
	name  string
	store *memory.Store
}

// candidacy is a candidate with its own access to the store, its clock, and its network to the
// brokers.
type candidacy struct {
	contest
	*gate
	store faults.Store
	clock *leap
	hand  *handClock // nil in virtual time
	term  *tenure.Term
}

// leap is a clock that a pause of the process moves. Its timers ring late.
type leap struct {
	clock.Clock
	ahead atomic.Int64
}

func (l *leap) Now() clock.Reading {
	r, d := l.Clock.Now(), time.Duration(l.ahead.Load())
	r.Mono, r.Raw, r.Boot = r.Mono+d, r.Raw+d, r.Boot+d
	return r
}

func (b scene) contest() contest { return contest{b, fresh("billing"), memory.New()} }

// elect returns once the candidate leads. An earlier leader must have stopped leading.
func (c contest) elect(id string, lease time.Duration) *candidacy {
	c.Helper()
	n := &candidacy{contest: c, gate: newGate(c.TB, c.dialing()), store: faults.New(c.store, 0, faults.Plan{})}
	n.clock = &leap{Clock: clock.Standard{}}
	if !virtual() {
		n.hand = newHandClock()
		n.clock.Clock, lease = n.hand, max(lease, time.Minute)
	}
	e, err := tenure.New(n.store, c.name, tenure.Config{ID: id, Lease: lease, Clock: n.clock})
	if err != nil {
		c.Fatal(err)
	}
	campaign := func() { n.term, err = e.Campaign(within(c)) }
	if n.hand == nil {
		campaign()
	} else {
		n.hand.during(campaign)
	}
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if n.hand != nil {
			cancel() // its clock stops here
		}
		_ = n.term.Resign(ctx)
	})
	return n
}

// depose cuts a leader off and returns when another one leads.
func (n *candidacy) depose(id string, lease time.Duration) *candidacy {
	n.Helper()
	n.cutOff()
	next := n.elect(id, lease)
	if err := n.term.Err(); !errors.Is(err, tenure.ErrLost) {
		n.Fatalf("two lead: %v", err)
	}
	return next
}

// cutOff ends a term: in virtual time when its lease is over, otherwise at once.
func (n *candidacy) cutOff() {
	n.Helper()
	n.store.Partition()
	if n.hand != nil {
		n.hand.forward(2 * time.Hour)
		n.release()
	}
}

// release saves the next leader the wait for the end of the lease, which does not affect the
// brokers' decision.
func (c contest) release() {
	c.Helper()
	e := read(c, c.store, c.name)
	r, err := record.Decode(e.Value)
	if err != nil {
		c.Fatal(err)
	}
	r.Released, r.Nonce, r.LastUpdated = true, fresh("nonce"), time.Time{}
	value, err := record.Encode(r)
	if err != nil {
		c.Fatal(err)
	}
	swap(c, c.store, c.name, e.Version, string(value))
}

// wrote returns a record of this leader as readers see it.
func (n *candidacy) wrote(value string) string { return fmt.Sprintf("%d:%s", n.term.Token(), value) }

func (n *candidacy) options(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(n.seeds...), n.dialer(), kgo.DefaultProduceTopic(n.topic)}, more...)
}

func (n *candidacy) open(opts ...fenced.Option) *fenced.Producer {
	n.Helper()
	p, err := fenced.Open(within(n), n.term, n.options(), opts...)
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = p.Close() })
	return p
}

func (b scene) produce(p *fenced.Producer, values ...string) {
	b.Helper()
	if err := p.Produce(within(b), records(values...)...); err != nil {
		b.Fatal(err)
	}
}

func records(values ...string) (all []*kgo.Record) {
	for _, v := range values {
		all = append(all, kgo.StringRecord(v))
	}
	return all
}

// aside runs a call and returns a channel for its error.
func aside(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// outcomeOf waits for the error of a call.
func (b scene) outcomeOf(done <-chan error) error {
	b.Helper()
	select {
	case err := <-done:
		return err
	case <-within(b).Done():
		b.Fatal("a call hangs")
		return nil
	}
}

// committed returns the committed records as "token:value", once the reader has seen the earlier
// transactions.
func (b scene) committed() []string {
	b.Helper()
	b.settle()
	return b.read(0, kgo.ReadCommitted())
}

// settle waits until all transactions are decided, so that a reader of committed records can read
// up to the end.
func (b scene) settle() {
	b.Helper()
	eventually(b, "transactions stay open", func() bool { return b.end(0, 0) == b.end(0, 1) })
}

// decided waits until the coordinator has finished the election's last transaction. Until then it
// gives no epoch, although readers already see the end of the transaction.
func (c contest) decided() {
	c.Helper()
	client := c.client()
	defer client.Close()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{c.name}
	eventually(c, "the transaction stays undecided", func() bool {
		got, err := req.RequestWith(within(c), client)
		if err != nil || len(got.TransactionStates) != 1 {
			return false
		}
		state := got.TransactionStates[0].State
		return state == "Empty" || strings.HasPrefix(state, "Complete") // the former is kfake's
	})
}

// end returns where the partition ends for readers of an isolation level.
func (b scene) end(partition int32, isolation int8) (end int64) {
	b.Helper()
	eventually(b, "the end of the partition", func() bool {
		var err error
		end, err = b.tryEnd(within(b), partition, isolation)
		return err == nil
	})
	return end
}

func (b scene) tryEnd(ctx context.Context, partition int32, isolation int8) (int64, error) {
	b.Helper()
	client := b.client()
	defer client.Close()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = b.topic, append(t.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel, req.Topics = isolation, append(req.Topics, t)
	got, err := req.RequestWith(ctx, client)
	if err != nil {
		return 0, err
	}
	return got.Topics[0].Partitions[0].Offset, kerr.ErrorForCode(got.Topics[0].Partitions[0].ErrorCode)
}

func (b scene) read(partition int32, isolation kgo.IsolationLevel) []string {
	b.Helper()
	seen, err := b.readUpTo(within(b), partition, b.end(partition, 0), isolation)
	if err != nil {
		b.Fatal(err)
	}
	return seen
}

// tryRead reads the committed records in partition 0, while the term lasts.
func (n *candidacy) tryRead() ([]string, error) {
	end, err := n.tryEnd(n.term.Context(), 0, 0)
	if err != nil {
		return nil, err
	}
	return n.readUpTo(n.term.Context(), 0, end, kgo.ReadCommitted())
}

func (b scene) readUpTo(ctx context.Context, partition int32, end int64, isolation kgo.IsolationLevel) (seen []string, err error) {
	b.Helper()
	client := b.client(kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{b.topic: {partition: kgo.NewOffset().AtStart()}}))
	defer client.Close()
	for at := int64(0); at < end; {
		got := client.PollFetches(ctx)
		if err := got.Err(); err != nil {
			return nil, err
		}
		for _, r := range got.Records() {
			at = r.Offset + 1
			if r.Attrs.IsControl() {
				continue
			}
			token, ok := fenced.Token(r)
			if !ok {
				b.Errorf("%s carries no token", r.Value)
			}
			seen = append(seen, fmt.Sprintf("%d:%s", token, r.Value))
		}
	}
	return seen, nil
}

func (b scene) expect(want ...string) {
	b.Helper()
	if got := b.committed(); !slices.Equal(got, want) {
		b.Errorf("committed is %q, not %q", got, want)
	}
}

// lost checks the error of a leader that no longer leads.
func (b scene) lost(err error) {
	b.Helper()
	if !errors.Is(err, tenure.ErrLost) {
		b.Errorf("a deposed leader gets the error %v", err)
	}
}

func fencedWrites(_ *testing.T, b scene) {
	leader := b.contest().elect("a", time.Minute)
	p := leader.open()
	// More than once if a coordinator is not ready yet.
	opened := leader.sent[kmsg.InitProducerID].Load()
	mine := records("one", "two")
	mine[0].Headers = []kgo.RecordHeader{{Key: "x"}, {Key: fenced.Header, Value: []byte("7")}}
	if err := p.Produce(within(b), mine...); err != nil {
		b.Fatal(err)
	}
	if len(mine[0].Headers) != 2 || len(mine[1].Headers) != 0 {
		b.Error("the caller's records have changed")
	}
	for range 3 {
		b.produce(p, "more")
	}
	b.produce(p)
	b.expect("1:one", "1:two", "1:more", "1:more", "1:more")
	if n := leader.sent[kmsg.InitProducerID].Load() - opened; n != 0 {
		b.Errorf("%d epochs more were asked for", n)
	}
}

// fencedLateProduce: the old leader checked its lease and was paused before it wrote. The brokers
// refuse the late write.
func fencedLateProduce(_ *testing.T, b scene) {
	old := b.contest().elect("old", shortLease)
	late := old.open()
	b.produce(late, "early")
	old.hold(kmsg.Produce)
	done := aside(func() error { return late.Produce(within(b), records("late")...) })
	letter := old.caught()
	next := old.depose("next", shortLease)
	p := next.open()
	b.lost(b.outcomeOf(done))
	_ = late.Close()
	letter.deliver()
	b.produce(p, "mine")
	if all := b.read(0, kgo.ReadUncommitted()); slices.Contains(all, old.wrote("late")) {
		b.Errorf("a late write is in the log, which holds %q", all)
	}
	b.expect(old.wrote("early"), next.wrote("mine"))
}

// fencedLateCommit is the same with the commit. Opening the next producer has aborted the
// transaction that it would have committed.
func fencedLateCommit(_ *testing.T, b scene) {
	old := b.contest().elect("old", shortLease)
	late := old.open()
	b.produce(late, "early")
	old.hold(kmsg.EndTxn)
	done := aside(func() error { return late.Produce(within(b), records("late")...) })
	letter := old.caught()
	next := old.depose("next", shortLease)
	p := next.open()
	b.expect(old.wrote("early"))
	err := b.outcomeOf(done)
	b.lost(err)
	if !errors.Is(err, fenced.ErrUnknown) {
		b.Errorf("a commit that is on its way: %v", err)
	}
	_ = late.Close()
	letter.deliver()
	b.produce(p, "mine")
	b.expect(old.wrote("early"), next.wrote("mine"))
}

// fencedCommitBeforeOpen: a commit may arrive after its leader was deposed, but not after the next
// producer was opened.
func fencedCommitBeforeOpen(_ *testing.T, b scene) {
	old := b.contest().elect("old", shortLease)
	late := old.open()
	old.hold(kmsg.EndTxn)
	done := aside(func() error { return late.Produce(within(b), records("late")...) })
	letter := old.caught()
	next := old.depose("next", shortLease)
	b.lost(b.outcomeOf(done))
	_ = late.Close()
	letter.deliver()
	p := next.open()
	b.expect(old.wrote("late"))
	b.produce(p, "mine")
	b.expect(old.wrote("late"), next.wrote("mine"))
}

// fencedLateInit: a deposed leader's request for an epoch arrives after the next leader's. The next
// leader gets another epoch.
func fencedLateInit(_ *testing.T, b scene) {
	old := b.contest().elect("old", shortLease)
	old.hold(kmsg.InitProducerID)
	done := aside(func() error {
		_, err := fenced.Open(within(b), old.term, old.options())
		return err
	})
	letter := old.caught()
	next := old.depose("next", shortLease)
	p := next.open()
	b.produce(p, "one")
	b.lost(b.outcomeOf(done))
	next.decided()
	letter.abandoned()
	letter.deliver()
	b.produce(p, "two")
	b.produce(p, "three")
	b.expect(next.wrote("one"), next.wrote("two"), next.wrote("three"))
	if n := next.sent[kmsg.InitProducerID].Load(); n < 2 {
		b.Error("the old leader's request has not fenced the new one: this test proves nothing")
	}
}

// fencedLateInitInTheMidst is the same after the next leader has written but not committed.
func fencedLateInitInTheMidst(_ *testing.T, b scene) {
	old := b.contest().elect("old", shortLease)
	old.hold(kmsg.InitProducerID)
	done := aside(func() error {
		_, err := fenced.Open(within(b), old.term, old.options())
		return err
	})
	letter := old.caught()
	next := old.depose("next", shortLease)
	p := next.open()
	b.lost(b.outcomeOf(done))
	next.hold(kmsg.EndTxn)
	done = aside(func() error { return p.Produce(within(b), records("one", "two")...) })
	commit := next.caught()
	letter.deliver()
	b.settle()
	commit.deliver()
	err := b.outcomeOf(done)
	// The brokers were still aborting, so the client sent the commit twice.
	if errors.Is(err, fenced.ErrUnknown) {
		b.expect()
		err = p.Produce(within(b), records("one", "two")...)
	}
	if err != nil {
		b.Error(err)
	}
	b.expect(next.wrote("one"), next.wrote("two"))
}

// fencedPausedInOpen: when the answer arrives, the lease of the process has ended, although no
// timer has rung yet.
func fencedPausedInOpen(_ *testing.T, b scene) {
	old := b.contest().elect("old", time.Minute)
	old.hold(kmsg.InitProducerID)
	done := aside(func() error {
		_, err := fenced.Open(within(b), old.term, old.options())
		return err
	})
	letter := old.caught()
	old.clock.ahead.Store(int64(2 * time.Hour))
	letter.deliver()
	b.lost(b.outcomeOf(done))
}

// fencedPausedBeforeCommit is the same between the last record and the commit, which is not sent.
func fencedPausedBeforeCommit(_ *testing.T, b scene) {
	old := b.contest().elect("old", time.Minute)
	p := old.open()
	old.hold(kmsg.Produce)
	done := aside(func() error { return p.Produce(within(b), records("late")...) })
	letter := old.caught()
	old.clock.ahead.Store(int64(2 * time.Hour))
	letter.deliver()
	err := b.outcomeOf(done)
	b.lost(err)
	if errors.Is(err, fenced.ErrUnknown) {
		b.Errorf("nothing was committed, but the error is %v", err)
	}
	b.expect()
}

// fencedRivals: two leaders of different elections use one ID. Each stops after some attempts, and
// returns the reason.
func fencedRivals(_ *testing.T, b scene) {
	one, two := b.contest().elect("one", time.Minute), b.contest().elect("two", time.Minute)
	id := fenced.WithID(fresh("shared"))
	first, second := one.open(id), two.open(id)
	var refused error
	for range 10 {
		b.produce(second, "ok")
		if refused = first.Produce(within(b), records("ok")...); refused != nil {
			break
		}
	}
	if !errors.Is(refused, fenced.ErrFenced) || errors.Is(refused, tenure.ErrLost) || errors.Is(refused, fenced.ErrUnknown) {
		b.Errorf("the first one gets the error %v", refused)
	}
	before := one.sent[kmsg.InitProducerID].Load()
	if err := first.Produce(within(b), records("x")...); !errors.Is(err, fenced.ErrFenced) || before < 4 ||
		one.sent[kmsg.InitProducerID].Load() != before {
		b.Errorf("after %d requests it asks again, with the error %v", before, err)
	}
	b.produce(second, "ok")
	b.expect(slices.Repeat([]string{"1:ok"}, 8)...)
}

// fencedUnknownCommit: the caller does not wait for the answer to a commit. The next call decides
// the transaction.
func fencedUnknownCommit(t *testing.T, b scene) {
	leader := b.contest().elect("a", time.Minute)
	p := leader.open()
	for _, arrives := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		leader.hold(kmsg.EndTxn)
		done := aside(func() error { return p.Produce(ctx, records(fmt.Sprint(arrives))...) })
		letter := leader.caught()
		bored := errors.New("bored")
		cancel(bored)
		if err := b.outcomeOf(done); !errors.Is(err, fenced.ErrUnknown) || !errors.Is(err, bored) {
			b.Errorf("a call without an answer returns %v", err)
		}
		letter.abandoned()
		if arrives {
			letter.deliver()
		}
		b.produce(p, "next")
		if !arrives {
			letter.deliver()
		}
	}
	b.produce(p, "last")
	b.expect("1:true", "1:next", "1:next", "1:last")
}

// fencedRefusedAfterApplied: a commit is applied and its answer is lost. Another producer is
// opened, and the client's second delivery is refused. That is no proof that nothing was committed.
func fencedRefusedAfterApplied(_ *testing.T, b scene) {
	one, two := b.contest().elect("one", time.Minute), b.contest().elect("two", time.Minute)
	id := fenced.WithID(fresh("shared"))
	p := one.open(id)
	one.hold(kmsg.EndTxn)
	done := aside(func() error { return p.Produce(within(b), records("once")...) })
	first := one.caught()
	one.hold(kmsg.EndTxn)
	// As when the network breaks, while requests in flight still arrive.
	_ = first.conn.Close()
	first.deliver()
	second := one.caught()
	other := two.open(id)
	b.expect("1:once")
	second.deliver()
	if err := b.outcomeOf(done); !errors.Is(err, fenced.ErrUnknown) {
		b.Errorf("the error is %v", err)
	}
	b.produce(other, "next")
	b.expect("1:once", "1:next")
}

// fencedAllOrNone: if a record cannot be written, none of the call is, and the next call works.
func fencedAllOrNone(_ *testing.T, b scene) {
	p := b.contest().elect("a", time.Minute).open()
	bad := records("good", strings.Repeat("x", 2<<20))
	err := p.Produce(within(b), bad...)
	if !errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, fenced.ErrUnknown) || errors.Is(err, fenced.ErrFenced) {
		b.Errorf("a record that is too large: %v", err)
	}
	b.expect()
	missing := records("good", "lost")
	missing[1].Topic = fresh("missing")
	if err := p.Produce(within(b), missing...); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		b.Errorf("a topic that does not exist: %v", err)
	}
	b.expect()
	b.produce(p, "after")
	b.expect("1:after")
}

func fencedTooLate(_ *testing.T, b scene) {
	leader := b.contest().elect("a", time.Minute)
	_, err := fenced.Open(within(b), leader.term, leader.options(), fenced.WithNeed(2*time.Minute))
	if !errors.Is(err, tenure.ErrTooLate) || leader.sent[kmsg.InitProducerID].Load() != 0 {
		b.Errorf("with less left than is needed: %v", err)
	}
	p := leader.open()
	if err := leader.term.Resign(within(b)); err != nil {
		b.Fatal(err)
	}
	b.lost(p.Produce(within(b), records("x")...))
	_, err = fenced.Open(within(b), leader.term, leader.options())
	b.lost(err)
	b.expect()
}

// fencedClose: Close ends a call, aborts its transaction, and does not disturb later calls.
func fencedClose(_ *testing.T, b scene) {
	leader := b.contest().elect("a", time.Minute)
	p := leader.open()
	b.produce(p, "one")
	leader.hold(kmsg.Produce)
	done := aside(func() error { return p.Produce(within(b), records("two")...) })
	letter := leader.caught()
	closed := aside(p.Close)
	if err := b.outcomeOf(done); !errors.Is(err, fenced.ErrClosed) {
		b.Errorf("a call ends with %v", err)
	}
	if err := b.outcomeOf(closed); err != nil {
		b.Error(err)
	}
	letter.deliver()
	if err := p.Produce(within(b), records("x")...); !errors.Is(err, fenced.ErrClosed) {
		b.Errorf("a closed producer writes: %v", err)
	}
	_ = p.Close()
	again := leader.open()
	b.produce(again, "three")
	b.expect("1:one", "1:three")
}

// TestFencedRights: a missing right is named at once, and the list in the package comment is
// enough.
func TestFencedRights(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		fencedRights(t, c.scene("written"), as)
	}, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.SeedTopics(1, "written"),
		kfake.User(plainSASL, "nobody", "nobody"), kfake.User(plainSASL, "half", "half", mayCommit()),
		kfake.User(plainSASL, "leader", "leader", mayCommit(), mayWrite()))
}

func mayCommit() kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTransactionalId, Name: "billing", Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: kmsg.ACLOperationWrite, Allow: true}
}

func mayWrite() kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "written", Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: kmsg.ACLOperationWrite, Allow: true}
}

// fencedRights needs three users: nobody without rights, half with a right to the transactional ID
// only, and leader.
func fencedRights(t *testing.T, b scene, login func(string) kgo.Opt) {
	term := contest{b, "billing", memory.New()}.elect("a", time.Hour).term
	for user, missing := range map[string]string{
		"nobody": "Write on the transactional id", "half": "Write on the topic", "leader": "",
	} {
		prompt(t, 5*time.Second, func() {
			p, err := fenced.Open(within(t), term, []kgo.Opt{kgo.SeedBrokers(b.seeds...), kgo.Dialer(b.dialing()), login(user), kgo.DefaultProduceTopic(b.topic)})
			if err == nil {
				err = p.Produce(within(t), kgo.StringRecord("x"))
				_ = p.Close()
			}
			switch {
			case missing == "" && err != nil:
				t.Errorf("%s: %v", user, err)
			case missing != "" && (!errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), missing)):
				t.Errorf("%s: %v", user, err)
			}
		})
	}
}

func TestFencedOptions(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		term := contest{c.scene(""), "billing", memory.New()}.elect("a", time.Minute).term
		for says, open := range map[string]func() (*fenced.Producer, error){
			"transactional id is empty": func() (*fenced.Producer, error) { return fenced.Open(within(t), term, c.direct(), fenced.WithID("")) },
			"the need is -1ns":          func() (*fenced.Producer, error) { return fenced.Open(within(t), term, c.direct(), fenced.WithNeed(-1)) },
			"kgo.TransactionalID: this package": func() (*fenced.Producer, error) {
				return fenced.Open(within(t), term, c.direct(kgo.TransactionalID("x")))
			},
			"leave out kgo.ConsumerGroup": func() (*fenced.Producer, error) {
				return fenced.Open(within(t), term, c.direct(kgo.ConsumerGroup("x"), kgo.ConsumeTopics("x")))
			},
		} {
			if _, err := open(); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v does not say %s", err, says)
			}
		}
	})
}
