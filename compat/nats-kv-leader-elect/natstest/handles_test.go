package natstest

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure"
	election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
)

// over starts a play over a handle, like a program that comes from nats-kv-leader-elect.
func over(t testing.TB, name string, kv nats.KeyValue, opts ...election.Option) *play {
	t.Helper()
	p := draft(t, name)
	e, err := election.NewElection(name, "billing", kv, p.options(opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p.begin(e)
}

// TestOverAHandle: a fresh election, a crash, a graceful end and a deleted key, with ten candidates
// on one server.
func TestOverAHandle(t *testing.T) {
	onServer(t, func(w *world) {
		kv := w.bucket(ttl)
		var all []*play
		for _, name := range names(10) {
			all = append(all, over(w, name, kv))
		}
		watchOver(w, all...)
		first, took := leadsWithin(w, 2*lease, all...)
		w.Log("the first leads after", took)
		if took > lease+soon {
			w.Errorf("the first leads only after %v", took)
		}
		time.Sleep(5 * time.Minute)
		if !first.IsLeader() || first.State() != election.LeaderState {
			w.Error("does not keep leading")
		}
		token := first.Token()

		first.Stop()
		first.ended()
		second, took := leadsWithin(w, soon, all...)
		w.Log("the next one leads", took, "after an orderly end")
		if second.Token() <= token {
			w.Errorf("tokens %d, then %d", token, second.Token())
		}

		token = second.Token()
		w.must(kv.Delete("billing")) // as the nats command does
		time.Sleep(time.Millisecond)
		third, took := leadsWithin(w, lease, all...)
		w.Log("the next one leads", took+time.Millisecond, "after the key was deleted")
		if third == second || third.Token() <= token {
			w.Errorf("%s with token %d, then %s with %d", second.name, token, third.name, third.Token())
		}
	})
}

// TestOverAModernHandle lets elections over both kinds of handle compete.
func TestOverAModernHandle(t *testing.T) {
	onServer(t, func(w *world) {
		a := over(w, "a", w.bucket(ttl))
		a.mustLead(2 * lease)
		b := draft(w, "b")
		var its time.Duration
		kv, err := w.modern().KeyValue(w.Context(), "ELECTIONS")
		w.must(err)
		e, err := election.New("b", "billing", kv, b.options(election.Configure(func(c *tenure.Config) {
			its = c.Lease
		}))...)
		w.must(err)
		b.begin(e)
		watchOver(w, a, b)
		if its != lease {
			w.Errorf("the lease is %v", its)
		}
		a.Stop()
		b.mustLead(soon)
	})
}

// TestUnsafeBucketIsReported: a bucket can lose its data; users of nats-kv-leader-elect ask about
// that.
func TestUnsafeBucketIsReported(t *testing.T) {
	onServer(t, func(w *world) {
		a := over(w, "a", w.bucket(ttl))
		time.Sleep(soon)
		if all := fmt.Sprint(errors.Join(a.errors()...)); !strings.Contains(all, "storage") {
			w.Errorf("reported %v", all)
		}
	})
}

// TestMigrating: an old candidate leads, and the new one follows it. Then they change roles.
func TestMigrating(t *testing.T) {
	onServer(t, func(w *world) {
		kv := w.bucket(ttl)
		last, err := kv.Create("billing", []byte("member 0"))
		w.must(err)
		var leader atomic.Value
		a := over(w, "a", kv, election.Migrating(), election.Configure(func(c *tenure.Config) {
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventLeader {
					leader.Store(e.Leader.ID)
				}
			}
		}))
		for range 5 {
			time.Sleep(ttl * 3 / 4)
			if last, err = kv.Update("billing", []byte("member 0"), last); err != nil || a.IsLeader() {
				w.Fatalf("the old leader is not left alone: %v, %v", err, a.IsLeader())
			}
			if id := leader.Load(); id != "member 0" {
				w.Errorf("takes %q for the leader", id)
			}
		}
		a.mustLead(2 * ttl) // the old one has crashed
		for range 5 {
			time.Sleep(ttl * 3 / 4)
			if _, err := kv.Create("billing", []byte("member 0")); err == nil || !a.IsLeader() {
				w.Fatalf("the new leader is not left alone: %v, %v", err, a.IsLeader())
			}
		}
		a.Stop()
		a.ended()
		time.Sleep(ttl + soon)
		_, err = kv.Create("billing", []byte("member 0"))
		w.must(err)
	})
}

// documented returns the subjects to which, by docs/nats-kv-leader-elect.md, a program over a
// handle must be allowed to publish.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/nats-kv-leader-elect.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^    "(\$[^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	if len(all) < 5 {
		t.Fatalf("the document lists %q", all)
	}
	return all
}

func withRights(rights []string) func(*server.Options) {
	return func(o *server.Options) {
		o.NoAuthUser, o.Users = "operator", []*server.User{
			{Username: "operator", Password: "s3cret"},
			{Username: "program", Password: "s3cret", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: rights}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		}
	}
}

// takesPart runs two candidates with these rights, one after the other, and reports whether both
// led.
func takesPart(t *testing.T, rights []string) (well bool) {
	onServer(t, func(w *world) {
		operator := w.bucket(ttl)
		var refusals atomic.Int64
		refused := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				refusals.Add(1)
			}
		})
		join := func(name string) *play {
			_, js := w.connect(nats.UserInfo("program", "s3cret"), refused)
			kv, err := js.KeyValue("ELECTIONS")
			if err != nil {
				return nil
			}
			p := draft(w, name)
			e, err := election.NewElection(name, "billing", kv, p.options()...)
			if err != nil {
				return nil
			}
			return p.begin(e)
		}
		a := join("a")
		if a == nil {
			return
		}
		time.Sleep(2 * lease)
		b := join("b")
		time.Sleep(3 * lease)
		first := a.IsLeader()
		w.must(operator.Delete("billing")) // reading this takes more requests than reading a record
		time.Sleep(lease)
		a.Stop()
		b.Stop()
		c := join("c")
		time.Sleep(soon)
		well = first && c.IsLeader() && refusals.Load() == 0
	}, withRights(rights))
	return well
}

// TestRights removes each of the documented rights in turn.
func TestRights(t *testing.T) {
	rights := documented(t)
	if !takesPart(t, rights) {
		t.Errorf("the documented rights do not do")
	}
	for i, right := range rights {
		if right == "$JS.FC.KV_ELECTIONS.>" {
			continue // a server asks for it after many writes
		}
		if takesPart(t, slices.Delete(slices.Clone(rights), i, i+1)) {
			t.Errorf("%s is not needed", right)
		}
	}
}
