//go:build integration

package kafka

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRealTwoOfThreeDown: no write may succeed, and no failed write may be reported as a success.
// When the brokers are back, the cell holds the last success or one of the writes with an unknown
// outcome, for old and new readers.
func TestRealTwoOfThreeDown(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	v := b.create(s, "key", "first")
	leader := b.Leader(t, b.topic, 0)
	for n := 1; n <= 3; n++ {
		if n != leader {
			b.must(b.Kill(n))
		}
	}
	for i := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := s.CompareAndSwap(ctx, "key", v, fmt.Append(nil, "open ", i))
		if cancel(); outcome(err) != "unknown" {
			t.Errorf("alone the broker answers: %v", err)
		}
	}
	b.must(b.Heal(b.context()))
	b.recovers(s, "key", v)
}

// recovers waits until swaps work again, and compares the old reader with a new one.
func (b *brokers) recovers(s *kafkalog.Store, key string, v driver.Version) {
	b.tb.Helper()
	wait.Until(b.tb, "a swap works again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if e, err := s.Read(ctx, key); err == nil {
			v = e.Version
		}
		next, err := s.CompareAndSwap(ctx, key, v, []byte("last"))
		if err == nil {
			v = next
		}
		return err == nil
	})
	for name, s := range map[string]*kafkalog.Store{"old": s, "new": b.open(b.direct())} {
		if e := read(b.tb, s, key); e.Version != v {
			b.tb.Errorf("the %s reader sees %s in version %s, not %s", name, e.Value, e.Version, v)
		}
	}
}

// TestRealTooFewCopies: if the topic requires all three copies and one is missing, a write is
// refused and not written.
func TestRealTooFewCopies(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	v := b.create(s, "key", "first")
	b.alter("min.insync.replicas", "3")
	b.must(b.Stop(b.Leader(t, b.topic, 0)%3 + 1))
	wait.Until(b.tb, "a write is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		next, err := s.CompareAndSwap(ctx, "key", v, []byte("x"))
		if err == nil {
			v = next // the copies were still complete
		}
		return err != nil && outcome(err) == "unknown"
	})
	b.alter("min.insync.replicas", "2")
	b.recovers(s, "key", v)
}

// TestRealBrokersRestart: all brokers are killed and restart with their files. Nothing is lost.
func TestRealBrokersRestart(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	v := b.create(s, "key", "0")
	for i := range 20 {
		v = swap(t, s, "key", v, fmt.Sprint(i+1))
	}
	for n := 1; n <= 3; n++ {
		b.must(b.Kill(n))
	}
	b.must(b.Heal(b.context()))
	eventually(t, "the log is read", shows(s, "key", func(driver.Entry) bool { return true }))
	if e := read(t, s, "key"); e.Version != v {
		t.Errorf("the cell holds %s in version %s, not %s", e.Value, e.Version, v)
	}
	b.recovers(s, "key", v)
}

// TestRealTimestamps: the timestamps that brokers or writers put into the log decide nothing.
func TestRealTimestamps(t *testing.T) {
	b := startReal(t)
	s := b.open(b.direct())
	v := create(t, s, "key", "0")
	for i, kind := range []string{"LogAppendTime", "CreateTime", "LogAppendTime"} {
		b.alter("message.timestamp.type", kind)
		v = swap(t, s, "key", v, fmt.Sprint(i+1))
		b.recovers(s, "key", v)
		v = read(t, s, "key").Version
	}
	var kinds int
	for _, r := range b.records() {
		if r.Attrs.TimestampType() == 1 {
			kinds++
		}
	}
	if kinds == 0 {
		t.Error("a topic that Open has created is not in the brokers' time")
	}
}

func TestRealRecreatedTopic(t *testing.T) {
	b := startReal(t)
	leaderOfARecreatedTopic(&b.site, func() {
		b.must(b.Complete(b.context()))
		b.DeleteTopic(t, b.topic)
		b.CreateTopic(t, b.topic, map[string]string{"retention.ms": "-1", "retention.bytes": fmt.Sprint(64 << 20)})
	})
}

func TestRealHeadOfTheLogIsRemoved(t *testing.T) {
	headOfTheLogIsRemoved(&startReal(t).site, 12_000)
}

func TestRealLogIsBounded(t *testing.T) {
	soak(t)
	logIsBounded(&startReal(t).site, 6, func() {})
}

// TestRealEndOfATransaction: another program's transaction in the topic ends under a later
// partition leader than the one that its record was written under. So the last entry in the log is
// a marker of a later epoch. That must not look as if the log had been truncated.
func TestRealEndOfATransaction(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	b.create(s, "key", "first")
	b.must(b.Complete(b.context()))
	p, err := kgo.NewClient(b.direct(kgo.TransactionalID(b.topic), kgo.DefaultProduceTopic(b.topic))...)
	b.must(err)
	defer p.Close()
	b.must(p.BeginTransaction())
	b.must(p.ProduceSync(b.context(), kgo.StringRecord("somebody else's")).FirstErr())
	old := b.Leader(t, b.topic, 0)
	b.must(b.Stop(old))
	wait.Until(t, "another leader", func() bool { return b.Leader(t, b.topic, 0) != old })
	b.must(p.EndTransaction(b.context(), kgo.TryCommit))
	eventually(t, "a read", shows(s, "key", func(driver.Entry) bool { return true }))
	for range 100 {
		if _, err := s.Read(b.context(), "key"); err != nil && strings.Contains(err.Error(), "truncated") {
			t.Fatal(err)
		}
	}
}

// realRuns is how often a test causes the faults that it measures.
var realRuns = flag.Int("runs", 1, "how often each fault is made on brokers")

// realRounds returns how many of n rounds a test makes: all of them from three runs on.
func realRounds(n int) int { return min(n, (n+2)/3**realRuns) }

// soak skips a test with faults of brokers, or of minutes, in the short pass.
func soak(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long: run it without -short")
	}
}

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	kafkad.Main(m)
}

// brokers are three real brokers, and a topic of the test that does not exist yet. The topic is not
// deleted afterwards: if the copies of a deleted topic are not complete, a broker that was down can
// no longer register (Kafka 4.3.1).
type brokers struct {
	*kafkad.Cluster
	site
}

func startReal(t testing.TB) *brokers {
	t.Helper()
	c := kafkad.Shared(t)
	topic := fresh("elections")
	return &brokers{c, newSite(t, c.Seeds(), topic, topic+".group", nil)}
}

func (b *brokers) must(err error) {
	b.tb.Helper()
	if err != nil {
		b.tb.Error(err)
	}
}

func (b *brokers) context() context.Context { return within(b.tb) }

// create writes the first value of a cell. Brokers that have just started may need several
// attempts.
func (b *brokers) create(s *kafkalog.Store, key, value string) (v driver.Version) {
	b.tb.Helper()
	wait.Until(b.tb, "a first write", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		e, err := s.Read(ctx, key)
		if v = e.Version; err != nil || string(e.Value) == value {
			return err == nil
		}
		v, err = s.CompareAndSwap(ctx, key, v, []byte(value))
		return err == nil
	})
	return v
}

// as connects a user whose rights are checked.
func (b *brokers) as(user string) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(b.SASLSeeds()...), as(user)}
}

// TestFreshReaderBeginsNearTheEnd counts the records that a store reads when it opens a long log.
func TestFreshReaderBeginsNearTheEnd(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct(), ample)
		v := create(t, s, "key", "x")
		const others = 10_240
		fill(t, s, others, []byte("x"))
		renewFillers(t, s, c)
		v = swap(t, s, "key", v, "y")
		v = swap(t, s, "key", v, "z") // it shows that nothing older is in force
		var first int64 = -1
		fetches := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
			at := r.(*kmsg.FetchRequest).Topics[0].Partitions[0].FetchOffset
			if first < 0 || at < first {
				first = at
			}
			return true
		}})
		if e := read(t, c.open(c.direct(), ample), "key"); e.Version != v {
			t.Errorf("the new reader sees %s", e.Value)
		}
		fetches.Remove()
		if end := c.PartitionInfo(topic, 0).HighWatermark; first < end-2*4096-300 {
			t.Errorf("of %d records the new reader began at %d", end, first)
		}
	})
}

// renewFillers writes every cell again, so that its last record is near the end, as in live
// elections.
func renewFillers(t testing.TB, s driver.Store, c *cluster) {
	t.Helper()
	keys := map[string]bool{}
	for _, r := range c.records() {
		keys[strings.SplitN(string(r.Headers[0].Value), " ", 7)[6]] = true
	}
	delete(keys, "key")
	var all sync.WaitGroup
	for key := range keys {
		all.Go(func() {
			e, err := s.Read(within(t), key)
			if err == nil {
				_, err = s.CompareAndSwap(within(t), key, e.Version, []byte("z"))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestHeadOfTheLogIsRemoved(t *testing.T) {
	inBubble(t, 1, func(_ *testing.T, c *cluster) { headOfTheLogIsRemoved(&c.site, 9216) })
}

// headOfTheLogIsRemoved: an operator, or retention, has removed the records of an idle election.
// Then the key is absent, for new and old readers. Its old versions no longer fit. Its terms
// continue above the old ones.
func headOfTheLogIsRemoved(s *site, others int) {
	t := s.tb
	old := s.open(s.direct(), ample)
	v := create(t, old, "idle", "released")
	live := create(t, old, "live", "0")
	fill(t, old, others, []byte("x"))
	live = swap(t, old, "live", live, "1")
	s.removeUpTo(int64(others / 2))
	fill(t, old, 256, []byte("x")) // this notifies the old reader
	for name, reader := range map[string]*kafkalog.Store{"old": old, "new": s.open(s.direct(), ample)} {
		if e := read(t, reader, "live"); e.Version != live {
			t.Errorf("the %s reader: the live cell holds %q", name, e.Value)
		}
		if e := read(t, reader, "idle"); !e.Absent() || e.Pristine || e.Floor < uint64(others) {
			t.Errorf("the %s reader: the idle cell is %+v", name, e)
		}
		if _, err := reader.CompareAndSwap(within(t), "idle", v, []byte("x")); outcome(err) != "conflict" {
			t.Errorf("the %s reader: a swap from the old version: %v", name, err)
		}
	}
	term := s.leads(old, "idle", tenure.Config{ID: "a", Lease: 3 * time.Second})
	if term.Token() < uint64(others) {
		t.Errorf("token %d", term.Token())
	}
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	c := start(t)
	logIsBounded(&c.site, 4, c.ApplyRetention)
}

// logIsBounded writes far more than the log may hold, to a topic that Open has created, on brokers
// that clean up. The bounds are the lowest that Open accepts.
func logIsBounded(s *site, rounds int, cleanUp func()) {
	const retention, segment = 16 << 20, 2 << 20
	t, store := s.tb, s.open(s.direct(), ample)
	s.alter("retention.bytes", fmt.Sprint(retention))
	s.alter("segment.bytes", fmt.Sprint(segment))
	v := create(t, store, "live", "0")
	value := bytes.Repeat([]byte("x"), driver.MaxValue)
	for i := range rounds {
		fill(t, store, 2048, value)
		v = swap(t, store, "live", v, fmt.Sprint(i))
		cleanUp()
	}
	var kept int64
	eventually(t, "the log is short again", func() bool {
		begin, end := s.bound((*kadm.Client).ListStartOffsets), s.bound((*kadm.Client).ListEndOffsets)
		kept = (end - begin) * driver.MaxValue
		return begin > 0 && kept <= retention+2*segment
	})
	t.Logf("%d MB are kept", kept>>20)
	if kept < retention*3/4 {
		t.Error("that is too little")
	}
	if e := read(t, s.open(s.direct(), ample), "live"); e.Version != v {
		t.Errorf("a new reader sees %q", e.Value)
	}
}

// TestManyKeys: ten thousand cells and watches need one log, one goroutine and little memory.
func TestManyKeys(t *testing.T) {
	keys := 10_000
	if testing.Short() {
		keys = 1000
	}
	c := start(t)
	s := c.open(c.direct(), ample)
	value := bytes.Repeat([]byte("r"), 320)
	goroutines, before := runtime.NumGoroutine(), heap()
	var seen sync.WaitGroup
	seen.Add(keys)
	var once sync.Map
	for i := range keys {
		key := fmt.Sprint("election ", i)
		stop, err := s.Watch(t.Context(), key, func(e driver.Entry) {
			if _, again := once.LoadOrStore(key, true); !again {
				seen.Done()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	began := time.Now()
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			if _, err := s.CompareAndSwap(within(t), fmt.Sprint("election ", i), "", value); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen.Wait()
	t.Logf("%d keys: %v for a write to each at once; %d bytes of heap a key, the broker's included", keys, time.Since(began),
		(heap()-before)/uint64(keys))
	eventually(t, "few goroutines more than before", func() bool { return runtime.NumGoroutine() <= goroutines+20 })
	if c.PartitionInfo(topic, 0).HighWatermark < int64(keys) {
		t.Error("not all was written")
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
