//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestLivesOfABucket: operators, backups and servers change a bucket under a living leader. The
// change ends the term. No other candidate leads beside the leader, not even one that starts just
// then. No token recurs. An event reports the change with the right error.
func TestLivesOfABucket(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *field)
		want   []error // by any member, in one event
	}{
		{"nats kv del", func(f *field) { must(f, f.kv.Delete(wait.Context(f), key)) },
			[]error{tenure.ErrVanished, natskv.ErrDeleted}},
		{"nats kv purge", func(f *field) { must(f, f.kv.Purge(wait.Context(f), key)) },
			[]error{tenure.ErrVanished, natskv.ErrPurged}},
		{"nats stream purge", func(f *field) { must(f, purge(wait.Context(f), f.js, f.kv.Bucket(), key)) },
			// A new member that knows nothing may be the first to read.
			[]error{tenure.ErrVanished}},
		{"recreated", (*field).remake, []error{tenure.ErrRemade}},
		{"put back", (*field).putBack, []error{tenure.ErrRegressed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, 900*time.Millisecond)
			all := f.join(3)
			try := 0
			wait.Until(t, "an event reports it", func() bool {
				try++
				f.struck = f.leader(0).token
				c.change(f)
				all = append(all, f.joinOne(fmt.Sprint("fresh", try)))
				f.leader(f.struck)
				// On a busy machine a new member may be the first to read, and the others see only
				// its write. The next try comes when there is nothing left to see.
				if wait.Within(5*time.Second, func() bool { return f.reported(c.want) }) {
					return true
				}
				for _, c := range all {
					c.relay.Heal()
				}
				return false
			})
		})
	}
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
			f.join(2)
			f.leader(0)
			f.reset(change)
			f.joinOne("fresh")
			f.expect(tenure.ErrVanished, natskv.ErrExpired)
		})
	}
}

// reset changes the settings of the bucket while it is used.
func (f *field) reset(change func(*jetstream.KeyValueConfig)) {
	f.Helper()
	c := jetstream.KeyValueConfig{Bucket: f.kv.Bucket(), History: 1, Storage: jetstream.FileStorage}
	change(&c)
	_, err := f.js.UpdateKeyValue(wait.Context(f), c)
	must(f, err)
}

// expect waits until one event wraps all of these errors.
func (f *field) expect(wants ...error) {
	f.Helper()
	wait.Until(f, "an event reports it", func() bool { return f.reported(wants) })
}

func (f *field) reported(wants []error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.causes, func(cause error) bool {
		return all(wants, func(want error) bool { return errors.Is(cause, want) })
	})
}

func all(errs []error, ok func(error) bool) bool {
	for _, err := range errs {
		if !ok(err) {
			return false
		}
	}
	return true
}

// remake deletes the bucket under a leader that gets no push of it, and creates another with the
// same name.
func (f *field) remake() {
	f.Helper()
	f.deafen(f.leader(0))
	f.recreate((*field).addPlain)
}

// recreate deletes the bucket and creates another with the same name.
func (f *field) recreate(add func(*field) error) {
	f.Helper()
	must(f, f.js.DeleteKeyValue(wait.Context(f), f.kv.Bucket()))
	// A server may not have removed a stream yet that was just deleted.
	wait.Succeeds(f, "the bucket is made", func(context.Context) error { return add(f) })
}

// addPlain creates the bucket as `nats kv add` does: its sequences begin at 1.
func (f *field) addPlain() error {
	kv, err := f.js.CreateKeyValue(wait.Context(f), jetstream.KeyValueConfig{
		Bucket: f.kv.Bucket(), History: 1, Storage: jetstream.FileStorage,
	})
	if err == nil {
		f.kv = kv
	}
	return err
}

// putBack restores a backup from before a hand-over, in which another living member leads.
func (f *field) putBack() {
	f.Helper()
	ctx := wait.Context(f)
	dir, first := f.TempDir(), f.leader(0)
	m, err := jsm.New(f.js.Conn())
	must(f, err)
	stream, err := m.LoadStream("KV_" + f.kv.Bucket())
	must(f, err)
	_, err = stream.SnapshotToDirectory(ctx, dir)
	must(f, err)
	f.handOver(ctx)
	f.deafen(f.leader(first.token))
	must(f, stream.Delete())
	wait.Until(f, "the backup is restored", func() bool {
		_, _, err := m.RestoreSnapshotFromDirectory(ctx, "KV_"+f.kv.Bucket(), dir)
		return err == nil
	})
}

// deafen prevents that a leader receives anything more, so that it trusts its lease to the end.
func (f *field) deafen(e elected) {
	f.struck = e.token
	e.by.relay.Blackhole()
	f.Cleanup(e.by.relay.Heal)
}

// handOver asks the leader to hand over.
func (f *field) handOver(ctx context.Context) {
	f.Helper()
	e, err := tenure.New(f.store, key, tenure.Config{ID: "operator", Lease: f.lease})
	must(f, err)
	// A busy machine may cost it the lease.
	wait.Until(f, "a leader is asked to make room", func() bool { return e.HandOver(ctx, "") == nil })
}

// purge removes the messages of a key and leaves no marker.
func purge(ctx context.Context, js jetstream.JetStream, bucket, key string) error {
	stream, err := js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return err
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+bucket+"."+key))
}
