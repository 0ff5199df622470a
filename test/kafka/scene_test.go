package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog/fenced"
	"github.com/tenure-go/tenure/internal/test/deposed"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
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
