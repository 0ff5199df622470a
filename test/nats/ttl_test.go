//go:build integration

package nats

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/reign"
)

const ttl = 2 * time.Second

func withTTL(c *jetstream.KeyValueConfig) { c.TTL = ttl }

// joinAll adds three candidates.
func (f *field) joinAll() (all []*reign.Candidate) {
	for _, id := range []string{"c0", "c1", "c2"} {
		all = append(all, f.join(id))
	}
	return all
}

// TestRenewalsOutliveTTL: a renewed record never becomes old enough to expire. A stall of the
// machine may cost a leader, and then the record. But the leader from before the record was missing
// leads no more.
func TestRenewalsOutliveTTL(t *testing.T) {
	t.Parallel()
	f := newField(t, 600*time.Millisecond, withTTL)
	f.joinAll()
	first := f.Leader(0).Token()
	leads := func(term reign.Term) bool { return term.Err() == nil }
	var last driver.Version
	ctx := wait.Context(t)
	for renewals := 0; renewals < 20; time.Sleep(ttl / 50) { // three to five of them in a TTL
		before := slices.DeleteFunc(slices.Clone(f.Terms()), func(term reign.Term) bool { return !leads(term) })
		now := f.record()
		if now.Absent() && slices.ContainsFunc(before, leads) {
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
	all := f.joinAll()
	f.Leader(0)
	for _, c := range all {
		c.Way.Blackhole()
	}
	wait.Until(t, "the record has expired", func() bool { return f.record().Absent() })
	token := f.latest()
	for _, c := range all {
		c.Way.Heal()
	}
	f.Leader(token)
}

// TestExpiryUnderALeader: with a TTL that is shorter than the time between renewals, the record of
// a living leader expires, and so does every vacant record after it. Inspect reports this wrong
// setting. It costs leaders, but never leads to two.
func TestExpiryUnderALeader(t *testing.T) {
	for name, change := range map[string]func(*jetstream.KeyValueConfig){
		"with a marker":   func(c *jetstream.KeyValueConfig) { c.TTL, c.LimitMarkerTTL = time.Second, time.Minute },
		"without a trace": func(c *jetstream.KeyValueConfig) { c.TTL = 500 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, 4*time.Second)
			f.join("c0")
			f.join("c1")
			f.Leader(0)
			c := jetstream.KeyValueConfig{Bucket: f.kv.Bucket(), History: 1, Storage: jetstream.FileStorage}
			change(&c)
			_, err := f.js.UpdateKeyValue(wait.Context(f), c)
			must(f, err)
			f.join("fresh")
			wait.Until(f, "an event reports it", func() bool { return f.Reported(&tenure.StoreError{Kind: driver.Deleted}, natskv.ErrExpired) })
		})
	}
}
