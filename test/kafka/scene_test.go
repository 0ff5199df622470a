package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog/fenced"
	"github.com/tenure-go/tenure/internal/test/deposed"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
func (s *site) scene(topic string) scene {
	same := *s
	same.topic = topic
	return scene{s.tb, same}
}

func (b scene) makeTopic(partitions int32) {
	b.Helper()
	if _, err := b.admin().CreateTopic(within(b), partitions, -1, nil, b.topic); err != nil {
		b.Fatal(err)
	}
}

// contest is an election with a leader that can be cut off, and a next leader.
type contest struct {
	scene
	name     string
	election *deposed.Election
}

// candidacy is a leader with its network to the brokers.
type candidacy struct {
	contest
	*gate
	*deposed.Leader
}

func (b scene) contest(name string) contest { return contest{b, name, deposed.NewElection(b, name)} }

// elect returns once the candidate leads. An earlier leader must have stopped leading.
func (c contest) elect(id string) *candidacy {
	c.Helper()
	return &candidacy{c, newGate(c.site), c.election.Elect(id)}
}

// elect lets a candidate lead a new election.
func (b scene) elect(id string) *candidacy {
	b.Helper()
	return b.contest(fresh("billing")).elect(id)
}

// depose cuts a leader off and returns when another one leads.
func (n *candidacy) depose(id string) *candidacy {
	n.Helper()
	return &candidacy{n.contest, newGate(n.site), n.Depose(id)}
}

// wrote returns a record of this leader as readers see it.
func (n *candidacy) wrote(value string) string { return fmt.Sprintf("%d:%s", n.Term.Token(), value) }

func (n *candidacy) options(more ...kgo.Opt) []kgo.Opt {
	return n.direct(append([]kgo.Opt{n.dialer(), kgo.DefaultProduceTopic(n.topic)}, more...)...)
}

func (n *candidacy) open(opts ...fenced.Option) *fenced.Producer {
	n.Helper()
	p, err := fenced.Open(within(n), n.Term, n.options(), opts...)
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
	eventually(b, "transactions stay open", func() bool {
		return b.end(0, (*kadm.Client).ListEndOffsets) == b.end(0, (*kadm.Client).ListCommittedOffsets)
	})
}

// decided waits until the coordinator has finished the election's last transaction. Until then it
// gives no epoch, although readers already see the end of the transaction.
func (c contest) decided() {
	c.Helper()
	eventually(c, "the transaction stays undecided", func() bool {
		got, _ := c.admin().DescribeTransactions(within(c), c.name)
		state := got[c.name].State
		return state == "Empty" || strings.HasPrefix(state, "Complete") // the former is kfake's
	})
}

// end waits for the end of a partition.
func (b scene) end(partition int32, by offsets) (end int64) {
	b.Helper()
	eventually(b, "the end of the partition", func() bool {
		var err error
		end, err = b.offset(within(b), partition, by)
		return err == nil
	})
	return end
}

func (b scene) read(partition int32, isolation kgo.IsolationLevel) []string {
	b.Helper()
	seen, err := b.readUpTo(within(b), partition, b.end(partition, (*kadm.Client).ListEndOffsets), isolation)
	if err != nil {
		b.Fatal(err)
	}
	return seen
}

// tryRead reads the committed records in partition 0, while the term lasts.
func (n *candidacy) tryRead() ([]string, error) {
	end, err := n.offset(n.Term.LeaseContext(), 0, (*kadm.Client).ListEndOffsets)
	if err != nil {
		return nil, err
	}
	return n.readUpTo(n.Term.LeaseContext(), 0, end, kgo.ReadCommitted())
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

const fencedPartitions = 3

func TestFencedOrder(t *testing.T) {
	sceneInBubble(t, func(_ *testing.T, b scene) { fencedOrder(b, 20, nil) })
}

// diary records the results that leaders got for their writes.
type diary struct {
	mu      sync.Mutex
	results map[string]error
	seen    map[uint64][]string // the content of partition 0 when the producer of a term was open
}

func newDiary() *diary { return &diary{results: map[string]error{}, seen: map[uint64][]string{}} }

func (l *diary) opened(term uint64, seen []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.seen[term]; !again {
		l.seen[term] = seen
	}
}

func (l *diary) enter(value string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results[value] = err
}

// writers returns the number of terms with a transaction that was reported as committed.
func (l *diary) writers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	terms := map[string]bool{}
	for value, err := range l.results {
		if token, _, _ := strings.Cut(value, ":"); err == nil {
			terms[token] = true
		}
	}
	return len(terms)
}

// enoughWriters is the number of terms that must have records in the log.
const enoughWriters = 3

// fencedOrder lets leaders follow one another on a network that delays their requests for longer
// than they lead. It runs at least this many leaders, and more until enough of them have written.
// Then it checks the log. If brokers are killed during that, calm ends the kills.
func fencedOrder(b scene, leaders int, calm func()) {
	b.makeTopic(fencedPartitions)
	seed := rand.Uint64()
	b.Log("seed", seed)
	c, l := b.contest(fresh("billing")), newDiary()
	delay := delays(seed)
	var work sync.WaitGroup
	var gates []*gate
	leader := c.elect("0")
	for n := 1; ; n++ {
		now := leader
		now.delay, now.kills = delay, calm != nil
		gates = append(gates, now.gate)
		work.Go(func() { now.write(l) })
		reign := time.Duration(1000+100*(n%4)) * time.Millisecond
		time.Sleep(reign << min((n-1)/leaders, 8)) // longer if they get nothing done
		if n >= leaders && l.writers() >= enoughWriters {
			break
		}
		leader = now.depose(fmt.Sprint(n))
	}
	leader.CutOff()
	work.Wait()
	for _, g := range gates {
		g.late.Wait()
	}
	if calm != nil {
		calm()
	}
	p := leader.depose("last").open() // decides open transactions
	b.check(l, enoughWriters)
	_ = p.Close()
}

// delays is the network of all leaders: one in sixteen of the important requests is late.
func delays(seed uint64) func(kmsg.Key) time.Duration {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	return func(key kmsg.Key) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if key != kmsg.Produce && key != kmsg.EndTxn && key != kmsg.InitProducerID || random.IntN(16) > 0 {
			return 0
		}
		return time.Duration(random.IntN(3000)+1) * time.Millisecond
	}
}

// write writes during the term: each time one record to each partition, so that torn transactions
// are visible.
func (n *candidacy) write(l *diary) {
	var p *fenced.Producer
	for i := 0; n.Term.Err() == nil; i++ {
		time.Sleep(time.Millisecond) // otherwise virtual time stands still
		if p == nil {
			p, _ = fenced.Open(within(n), n.Term, n.options(kgo.RecordPartitioner(kgo.ManualPartitioner())))
			if p != nil {
				if seen, err := n.tryRead(); err == nil {
					l.opened(n.Term.Token(), seen)
				}
			}
			continue
		}
		value := fmt.Sprintf("%s/%d", n.wrote(""), i)
		l.enter(value, p.Produce(within(n), toEach(value)...))
	}
	if p != nil {
		_ = p.Close()
	}
}

func toEach(value string) (all []*kgo.Record) {
	for partition := range int32(fencedPartitions) {
		all = append(all, &kgo.Record{Partition: partition, Value: []byte(value)})
	}
	return all
}

// check checks all guarantees.
func (b scene) check(l *diary, atLeast int) {
	b.Helper()
	b.settle()
	first, terms, unknown := b.read(0, kgo.ReadCommitted()), map[uint64]bool{}, 0
	for partition := range int32(fencedPartitions) {
		seen := b.read(partition, kgo.ReadCommitted())
		if !slices.Equal(seen, first) {
			b.Errorf("partitions 0 and %d differ: a transaction is torn", partition)
		}
		tokens := make([]uint64, len(seen))
		for i, s := range seen {
			token, _, _ := strings.Cut(s, ":")
			tokens[i], _ = strconv.ParseUint(token, 10, 64)
			terms[tokens[i]] = true
		}
		if !slices.IsSortedFunc(tokens, cmp.Compare[uint64]) {
			b.Errorf("partition %d holds a newer term's records before an older one's: %v", partition, tokens)
		}
	}
	for term, seen := range l.seen {
		if then, now := upTo(term, seen), upTo(term, first); !slices.Equal(then, now) {
			b.Errorf("after the producer of term %d was open, earlier terms still wrote: %d transactions, then %d", term, len(then), len(now))
		}
	}
	count := map[string]int{}
	for _, s := range first {
		_, value, _ := strings.Cut(s, ":")
		count[value]++
	}
	for value, err := range l.results {
		n := count[value]
		switch {
		case err == nil && n != 1, n > 1:
			b.Errorf("%s is there %d times, and its writer got %v", value, n, err)
		case err != nil && !errors.Is(err, fenced.ErrUnknown) && n > 0:
			b.Errorf("%s is there, and its writer got %v", value, err)
		case errors.Is(err, fenced.ErrUnknown):
			unknown++
		}
		delete(count, value)
	}
	if len(count) > 0 {
		b.Errorf("no leader wrote %v", slices.Collect(maps.Keys(count)))
	}
	b.Logf("%d transactions by %d terms, %d results, %d of them unknown; %d producers read", len(first), len(terms), len(l.results),
		unknown, len(l.seen))
	if len(terms) < atLeast {
		b.Errorf("only %d terms have written: this test proves little", len(terms))
	}
}

// upTo returns the records of earlier terms than this one.
func upTo(term uint64, seen []string) (earlier []string) {
	for _, s := range seen {
		token, _, _ := strings.Cut(s, ":")
		if n, _ := strconv.ParseUint(token, 10, 64); n < term {
			earlier = append(earlier, s)
		}
	}
	return earlier
}

// staleInit requests an epoch with one that another request has outdated, as clients do by
// themselves after some errors.
func (b scene) staleInit() error {
	client := b.client()
	defer client.Close()
	id, held := fresh("billing"), kmsg.InitProducerIDResponse{ProducerID: -1, ProducerEpoch: -1}
	ask := func(with kmsg.InitProducerIDResponse) kmsg.InitProducerIDResponse {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &id, 10_000
		req.ProducerID, req.ProducerEpoch = with.ProducerID, with.ProducerEpoch
		var got *kmsg.InitProducerIDResponse
		eventually(b, "an answer", func() bool {
			var err error
			got, err = req.RequestWith(within(b), client)
			return err == nil && !kerr.IsRetriable(kerr.ErrorForCode(got.ErrorCode))
		})
		return *got
	}
	none := held
	held = ask(none)
	ask(none)
	return kerr.ErrorForCode(ask(held).ErrorCode)
}

// TestStaleInit exists for real brokers: kfake gives an epoch to any former owner.
func TestStaleInit(t *testing.T) {
	sceneInBubble(t, func(t *testing.T, b scene) {
		if err := b.staleInit(); err != nil {
			t.Errorf("kfake now refuses this, with %v: correct the comments that say that it does not", err)
		}
	})
}
