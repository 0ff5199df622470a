package chaos

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const ttl = 2 * time.Second

func withTTL(c *jetstream.KeyValueConfig) { c.TTL = ttl }

// TestRenewalsOutliveTTL: a record that is renewed never grows old enough to vanish.
func TestRenewalsOutliveTTL(t *testing.T) {
	t.Parallel()
	f := newField(t, 600*time.Millisecond, withTTL)
	f.join(3)
	first := f.leader(0).token
	for end := time.Now().Add(2 * ttl); time.Now().Before(end); time.Sleep(ttl / 20) {
		if f.record().Absent() {
			t.Fatal("the record of a live leader has vanished")
		}
	}
	if last := f.latest(); last != first {
		t.Logf("the leader changed, from term %d to term %d: the machine is busy", first, last)
	}
}

// TestRecordVanishesAfterTheLast: with all candidates gone the record does what the bucket says, and the next leader's
// token is above it nevertheless.
func TestRecordVanishesAfterTheLast(t *testing.T) {
	t.Parallel()
	f := newField(t, 600*time.Millisecond, withTTL)
	all := f.join(3)
	token := f.leader(0).token
	for _, c := range all {
		c.relay.Blackhole()
	}
	eventually(t, "the record has expired", func() bool { return f.record().Absent() })
	token = max(token, f.latest())
	for _, c := range all {
		c.relay.Heal()
	}
	f.leader(token)
}
