package natskv

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestCheckRights: a user without the right to write gets an error, and nothing is written.
func TestCheckRights(t *testing.T) { inBubble(t, checkRights) }

func checkRights(t *testing.T) {
	f := newRightsFixture(t, observerRights, "_INBOX.>")
	f.expectDenied("check", "publish on $KV.B."+testKey, func(ctx context.Context) error {
		return f.store.CheckRights(ctx, testKey)
	})
	all := unopened(t, f.nc)
	f.put(testKey, "x")
	if err := all.CheckRights(wait.Context(t), testKey); err != nil {
		t.Errorf("with the right: %v", err)
	}
	if err := FromKeyValue(f.kv).CheckRights(wait.Context(t), testKey); err != nil {
		t.Errorf("over a handle: %v", err)
	}
	f.nc.Close()
	if err := all.CheckRights(wait.Context(t), testKey); err == nil || errors.Is(err, driver.ErrDenied) {
		t.Errorf("without an answer: %v", err)
	}
}

// TestCheckRightsChangesNothing: with no setting of the bucket does the check store a message.
func TestCheckRightsChangesNothing(t *testing.T) {
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"as it is":         func(*jetstream.StreamConfig) {},
		"new is discarded": func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew },
		"old is discarded": func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 1 },
		"full":             func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardNew, 1 },
		"full for each key": func(c *jetstream.StreamConfig) {
			c.Discard, c.MaxMsgs, c.DiscardNewPerSubject = jetstream.DiscardNew, 3, true
		},
		"a long history": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 64 },
		"no roll-ups":    func(c *jetstream.StreamConfig) { c.AllowRollup = false },
		"republished": func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "copy.>"}
		},
	} {
		t.Run(name, func(t *testing.T) { inBubble(t, func(t *testing.T) { changesNothing(t, change) }) })
	}
}

func changesNothing(t *testing.T, change func(*jetstream.StreamConfig)) {
	f := newFixture(t)
	f.put(testKey, "x")
	stream, err := f.js.Stream(wait.Context(t), "KV_"+f.kv.Bucket())
	f.must(err)
	config := stream.CachedInfo().Config
	change(&config)
	_, err = f.js.UpdateStream(wait.Context(t), config)
	f.must(err)
	copied, err := f.nc.SubscribeSync("copy.>")
	f.must(err)
	state := func() (s jetstream.StreamState) {
		info, err := stream.Info(wait.Context(t))
		f.must(err)
		return info.State
	}
	before := state()
	for _, key := range []string{testKey, "absent"} {
		if err := f.store.CheckRights(wait.Context(t), key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if after := state(); after.LastSeq != before.LastSeq || after.Msgs != before.Msgs || after.Bytes != before.Bytes {
		t.Errorf("the stream was %+v and is %+v", before, after)
	}
	if e := f.read(f.store, testKey); string(e.Value) != "x" {
		t.Errorf("the key holds %q", e.Value)
	}
	f.must(f.nc.Flush())
	if n, _, _ := copied.Pending(); n > 0 {
		t.Errorf("%d messages were copied", n)
	}
}

// TestStandbyWithoutTheRightToWrite: the election reports the missing right while another candidate
// leads.
func TestStandbyWithoutTheRightToWrite(t *testing.T) { inBubble(t, standbyWithoutTheRightToWrite) }

func standbyWithoutTheRightToWrite(t *testing.T) {
	f := newRightsFixture(t, observerRights, "_INBOX.>")
	leader, _ := f.member(t, closedAfter(t, unopened(t, f.nc)), "leader", nil)
	_, err := leader.Wait(wait.Context(t), func(s tenure.Status) bool { return s.State == tenure.StateLeader })
	f.must(err)
	standby, _ := f.member(t, f.store, "standby", nil)
	s, err := standby.Wait(wait.Context(t), func(s tenure.Status) bool { return s.Health() != nil })
	if err != nil || !errors.Is(s.WriteErr, driver.ErrDenied) ||
		!strings.Contains(s.WriteErr.Error(), "grant publish on $KV.B.") {
		t.Errorf("health: %v (%v)", s.Health(), err)
	}
}
