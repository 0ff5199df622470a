//go:build integration

package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

const ttl = 2 * time.Second

func withTTL(c *jetstream.KeyValueConfig) { c.TTL = ttl }

// TestRenewalsOutliveTTL: a renewed record never becomes old enough to expire. A stall of the
// machine may cost a leader, and then the record. But the leader from before the record was missing
// leads no more.
func TestRenewalsOutliveTTL(t *testing.T) {
	t.Parallel()
	f := newField(t, 600*time.Millisecond, withTTL)
	f.join(3)
	first := f.leader(0).token
	var last driver.Version
	ctx := wait.Context(t)
	for renewals := 0; renewals < 20; time.Sleep(ttl / 50) { // three to five of them in a TTL
		before := f.leading()
		now := f.record()
		if now.Absent() && slices.ContainsFunc(before, func(term *tenure.Term) bool { return term.Err() == nil }) {
			t.Fatal("the record of a live leader has vanished")
		}
		if !now.Absent() && now.Version != last {
			renewals, last = renewals+1, now.Version
		}
		if ctx.Err() != nil {
			t.Fatalf("only %d renewals", renewals)
		}
	}
	if last := f.latest(); last != first {
		t.Logf("the leader changed, from term %d to term %d: the machine is busy", first, last)
	}
}

// TestRecordVanishesAfterTheLast: when all candidates are gone, the record expires after the TTL of
// the bucket. The next leader's token is still higher.
func TestRecordVanishesAfterTheLast(t *testing.T) {
	t.Parallel()
	f := newField(t, 600*time.Millisecond, withTTL)
	all := f.join(3)
	token := f.leader(0).token
	for _, c := range all {
		c.relay.Blackhole()
	}
	wait.Until(t, "the record has expired", func() bool { return f.record().Absent() })
	token = max(token, f.latest())
	for _, c := range all {
		c.relay.Heal()
	}
	f.leader(token)
}
