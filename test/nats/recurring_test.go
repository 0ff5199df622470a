//go:build integration && linux

package nats

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/reign"
	"github.com/tenure-go/tenure/test/internal/relay"
)

const plain = "plain bucket"

// absent is the ID of a successor that does not exist.
const absent = "absent"

// TestRecurringVersion: a member is stopped or cut off, and its bucket deleted and recreated. The
// member comes back exactly when the version that it knows is that of another leader's record. That
// leader is cut off and trusts its lease. The member must not replace a record that it has not
// read. In a bucket of Create, where no version recurs, the servers refuse the write anyway.
func TestRecurringVersion(t *testing.T) {
	for _, attack := range []struct {
		name string
		play func(f *field, own bool, add func(*field) error) (second reign.Term)
	}{
		{"stopped when it saw a release", (*field).stoppedAtRelease},
		{"stopped while it led", (*field).stoppedAsLeader},
		{"cut off with a renewal under way", (*field).cutOffWhileRenewing},
	} {
		for _, bucket := range []struct {
			name string
			add  func(*field) error
		}{
			{plain, (*field).addPlain},
			{"bucket of Create", (*field).addByCreate},
		} {
			for name, own := range map[string]bool{"borrowed connection": false, "own connection": true} {
				t.Run(attack.name+", "+bucket.name+", "+name, func(t *testing.T) {
					if testing.Short() && (own || bucket.name != plain) {
						t.Skip("the soak does it")
					}
					t.Parallel()
					f := newField(t, 3*time.Second)
					f.recreate(bucket.add)
					// By now another member leads, but not too early.
					<-attack.play(f, own, bucket.add).LeaseContext().Done()
				})
			}
		}
	}
}

// stoppedAtRelease: the member is stopped while it waits for a successor that does not exist.
func (f *field) stoppedAtRelease(own bool, add func(*field) error) (second reign.Term) {
	f.vouched = true
	first := f.join("first")
	f.Leader(0)
	f.pad()
	p := f.start(own, false)
	p.says(saysFollows)
	must(f, first.ForceHandOver(wait.Context(f), absent))
	p.says(saysVacant)
	must(f, p.Freeze())
	first.Leave()
	if r, err := record.Decode(f.record().Value); err != nil || r.Successor != absent {
		f.Skipf("the machine was too slow to stop the member before it claimed: %+v, %v", r, err)
	}
	second = f.wake(p, add)
	p.leads(0)
	return second
}

// stoppedAsLeader: the member is stopped after a renewal.
func (f *field) stoppedAsLeader(own bool, add func(*field) error) (second reign.Term) {
	p := f.start(own, false)
	token := p.leads(0)
	f.pad()
	f.renewed()
	must(f, p.Freeze())
	second = f.wake(p, add)
	p.leads(token)
	return second
}

// cutOffWhileRenewing: the member leads and is cut off. It does not know the outcome of its last
// renewal, and would replace that record by a release when it ends. A candidate that starts then
// would believe the release.
func (f *field) cutOffWhileRenewing(own bool, add func(*field) error) (second reign.Term) {
	p := f.start(own, true)
	p.leads(0)
	f.pad()
	f.renewed()
	p.relay.Cut()
	n := f.revision()
	f.lease *= 2 // the member takes some time to come back
	second = f.nextLife(add)
	f.meet(second, n)
	must(f, p.relay.Restore())
	p.says(saysRemade)
	p.leave()
	f.join("late")
	f.Leader(second.Token())
	return second
}

// wake lets a stopped member continue when the bucket was recreated and another member leads there.
// The server's messages from that time arrive a little later.
func (f *field) wake(p *process, add func(*field) error) (second reign.Term) {
	f.Helper()
	n := f.revision()
	p.relay.Hold()
	second = f.nextLife(add)
	f.meet(second, n)
	must(f, p.Continue())
	time.Sleep(200 * time.Millisecond) // less than the time of an attempt
	p.relay.Release()
	return second
}

// nextLife recreates the bucket and returns the leader there.
func (f *field) nextLife(add func(*field) error) reign.Term {
	f.Helper()
	f.recreate(add)
	f.vouched = false
	last := f.latest()
	f.join("second")
	return f.Leader(last)
}

// meet waits until the leader's record has a sequence, and cuts the leader off.
func (f *field) meet(leader reign.Term, n uint64) {
	f.Helper()
	f.reach(n)
	leader.By.Way.Blackhole()
	f.Cleanup(leader.By.Way.Heal)
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

// addByCreate creates the bucket as a program does: its sequences begin at the time.
func (f *field) addByCreate() error {
	s, err := natskv.Open(wait.Context(f), f.js, f.kv.Bucket(), natskv.Create())
	if err == nil {
		err = s.Close()
	}
	return err
}

// revision returns the sequence of the record.
func (f *field) revision() uint64 {
	f.Helper()
	e, err := f.kv.Get(wait.Context(f), key)
	must(f, err)
	return e.Revision()
}

// renewed waits for the next renewal.
func (f *field) renewed() {
	f.Helper()
	before := f.revision()
	wait.Until(f, "the leader renews", func() bool { return f.revision() > before })
}

// pad writes other keys, so that a second bucket does not reach the sequence of a record before a
// candidate leads there.
func (f *field) pad() {
	f.Helper()
	for range 20 {
		_, err := f.kv.Put(wait.Context(f), "other", nil)
		must(f, err)
	}
}

// reach writes other keys until the leader's next renewal has sequence n, and waits for that
// renewal. It does nothing if the sequences of a bucket begin above those of the former one.
func (f *field) reach(n uint64) {
	f.Helper()
	ctx := wait.Context(f)
	stream, err := f.js.Stream(ctx, "KV_"+f.kv.Bucket())
	must(f, err)
	for {
		info, err := stream.Info(ctx)
		must(f, err)
		if info.State.LastSeq+1 >= n {
			break
		}
		// The leader may renew in between. Then this write is refused.
		_, _ = f.js.Publish(ctx, "$KV."+f.kv.Bucket()+".other", nil, jetstream.WithExpectLastSequence(info.State.LastSeq))
	}
	wait.Until(f, "the leader's record has the sequence", func() bool { return f.revision() >= n })
}

// settings are the settings of a member process.
type settings struct {
	URL, Bucket string
	Lease       time.Duration
	Own         bool // it has its own connection; otherwise it borrows one
	Lingers     bool // its work stops only when the process should end
}

// memberVariable makes TestMemberProcess a member.
const memberVariable = "TENURE_TEST_MEMBER"

// memberID is the ID of a member process.
const memberID = "process"

// said is a report of a member process.
type said struct {
	What   string
	Token  uint64  // of acts
	Stamps []int64 // of acts
}

// A member process reports one of these.
const (
	saysActs    = "acts"    // its term was valid when it checked
	saysFollows = "follows" // it sees that another member leads
	saysVacant  = "vacant"  // it sees a vacancy
	saysRemade  = "remade"  // it sees that the store was recreated
)

// TestMemberProcess is not a test. It is the program of a member process, which takes part until
// its standard input ends.
func TestMemberProcess(t *testing.T) {
	if os.Getenv(memberVariable) == "" {
		t.Skip("the other tests start it")
	}
	var s settings
	rest, err := crew.Settings(os.Stdin, &s)
	must(t, err)
	ctx, cancel := crew.Until(context.Background(), rest)
	defer cancel()
	opts := []natskv.Option{natskv.Pristine()}
	if s.Own {
		opts = append(opts, natskv.OwnConnection())
	}
	store := openStore(t, connect(t, s.URL), s.Bucket, opts...)
	reports := crew.NewReporter(os.Stdout)
	e, err := tenure.New(store, key, tenure.Config{ID: memberID, Lease: s.Lease, OnEvent: func(e tenure.Event) {
		switch {
		case errors.Is(e.Cause, &tenure.StoreError{Kind: driver.Recreated}):
			reports.Send(said{What: saysRemade})
		case e.Kind == tenure.EventLeader && !e.Leader.Exists():
			reports.Send(said{What: saysVacant})
		case e.Kind == tenure.EventLeader && e.Leader.ID != e.ID:
			reports.Send(said{What: saysFollows})
		}
	}})
	must(t, err)
	asker := asking.Start(func(_ string, token uint64, stamps []int64) {
		reports.Send(said{saysActs, token, stamps})
	})
	defer asker.Stop()
	must(t, e.Run(ctx, func(work context.Context, t *tenure.Term) error {
		asker.Enter(key, t, asking.ByTerm)
		<-work.Done()
		if s.Lingers {
			<-ctx.Done()
		}
		return nil
	}))
}

// process is a candidate in its own process, which can be frozen.
type process struct {
	*crew.Process
	f       *field
	relay   *relay.Relay
	leave   func() // ends the process gracefully and waits for it
	reports crew.Journal[said]
}

// start starts a member process.
func (f *field) start(own, lingers bool) *process {
	f.Helper()
	p := &process{f: f, relay: f.relayed()}
	cmd := crew.Self("-test.run=^TestMemberProcess$")
	cmd.Env = append(os.Environ(), memberVariable+"=1")
	var err error
	p.Process, err = crew.Hire(cmd, settings{p.relay.URL(), f.kv.Bucket(), f.lease, own, lingers}, func(s said) {
		f.Book.Add(key, memberID, s.Token, s.Stamps...)
		p.reports.Add(s)
	}, func(line string) { f.Log("the member process says: ", line) })
	must(f, err)
	p.leave = sync.OnceFunc(func() {
		p.relay.Heal()
		_ = p.Continue()
		if err := p.Leave(); err != nil {
			f.Errorf("the member process: %v", err)
		}
	})
	f.Cleanup(p.leave)
	return p
}

// leads waits until the process leads with a token other than the given one, and returns its token.
func (p *process) leads(other uint64) (token uint64) {
	p.f.Helper()
	s, err := p.reports.Await(wait.Context(p.f), 0, "the member process to lead", func(s said) bool {
		return s.Token != 0 && s.Token != other
	})
	must(p.f, err)
	return s.Token
}

// says waits until the process has said a word.
func (p *process) says(word string) {
	p.f.Helper()
	_, err := p.reports.Await(wait.Context(p.f), 0, "the member process to say "+word, func(s said) bool { return s.What == word })
	must(p.f, err)
}
