//go:build integration

package kafka

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kgo"
)

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
