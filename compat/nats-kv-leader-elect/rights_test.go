package election

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// documented returns the subjects to which, by docs/nats-kv-leader-elect.md, a program over a
// handle must be allowed to publish.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/nats-kv-leader-elect.md")
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

func withRights(rights []string) *server.Options {
	return &server.Options{Users: []*server.User{
		{Username: "operator", Password: "s3cret"},
		{Username: "program", Password: "s3cret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: rights}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}},
	}, NoAuthUser: "operator"}
}

// takesPart runs two candidates with these rights, one after the other, and reports whether both
// led.
func takesPart(t *testing.T, rights []string) (well bool) {
	onServerOf(t, withRights(rights), func(w *world) {
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
			p := draft(w.T)
			e, err := NewElection(name, "billing", kv, p.options()...)
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
	})
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
