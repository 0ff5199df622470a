package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/kafkalog/fenced"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The next leader waits for the end of shortLease. It is the same for all members of an election,
// and shorter than clients wait for a delayed answer. Outside bubbles leases are longer, on clocks
// that tests put forward.
const shortLease = 4 * time.Second

// scene is a cluster with its own topic to write to.
type scene struct {
	testing.TB
	site
}

// sceneInBubble has a scene with its own cluster in virtual time.
func sceneInBubble(t *testing.T, test func(*testing.T, scene)) {
	t.Helper()
	inBubble(t, 1, func(t *testing.T, c *cluster) { test(t, c.scene(fresh("written"))) })
}

// scene writes to a topic of this cluster.
func (s *site) scene(topic string) scene { return scene{s.tb, site{s.tb, s.seeds, topic, s.dial}} }

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
	n := &candidacy{contest: c, gate: newGate(c.TB, c.site.dial), store: faults.New(c.store, 0, faults.Plan{})}
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
	return n.direct(append([]kgo.Opt{n.dialer(), kgo.DefaultProduceTopic(n.topic)}, more...)...)
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

// handClock moves only when it is put forward. So a stall of the machine costs no member a lease.
type handClock struct {
	mu     sync.Mutex
	now    time.Duration
	timers map[*handTimer]bool
}

type handTimer struct {
	at   time.Duration
	ring func()
}

func newHandClock() *handClock {
	return &handClock{now: time.Hour, timers: map[*handTimer]bool{}}
}

// Now implements clock.Clock.
func (h *handClock) Now() clock.Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := clock.Reading{Wall: time.Unix(0, 0).Add(h.now)}
	r.Mono, r.Raw, r.Boot = h.now, h.now, h.now
	return r
}

// AfterFunc implements clock.Clock.
func (h *handClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &handTimer{h.now + d, f}
	h.timers[t] = true
	h.ring()
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		waits := h.timers[t]
		delete(h.timers, t)
		return waits
	}
}

// Drift implements clock.Clock.
func (*handClock) Drift() float64 { return 0.01 }

// forward lets time pass.
func (h *handClock) forward(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += d
	h.ring()
}

// ring must be called with the lock held.
func (h *handClock) ring() {
	for t := range h.timers {
		if t.at <= h.now {
			delete(h.timers, t)
			go t.ring()
		}
	}
}

// during lets time pass until the call has returned.
func (h *handClock) during(call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
			h.forward(time.Millisecond)
		}
	}
}
