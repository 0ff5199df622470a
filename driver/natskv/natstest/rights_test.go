//go:build integration

package natstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// documented returns the configuration in docs/nats.md.
func documented(t testing.TB) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "nats.md"))
	must(t, err)
	const begin, end = "\n    accounts {\n", "\n    }\n"
	_, rest, ok := strings.Cut(string(page), begin)
	text, _, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("docs/nats.md has no configuration of accounts")
	}
	return "jetstream: {}\n" + begin + text + end
}

// withUser changes the rights of one user, and adds one that may do everything in the same account.
func withUser(t testing.TB, name string, change func(*server.Permissions)) func(*server.Options) {
	return func(o *server.Options) {
		i := slices.IndexFunc(o.Users, func(u *server.User) bool { return u.Username == name })
		if i < 0 {
			t.Fatalf("docs/nats.md has no user %s", name)
		}
		if change != nil {
			change(o.Users[i].Permissions)
		}
		o.Users = append(o.Users, &server.User{Username: "all", Password: "s3cret", Account: o.Users[i].Account})
	}
}

// login connects as a user of the documentation.
func login(t testing.TB, s *server.Server, user string, opts ...nats.Option) *nats.Conn {
	return natsnet.Connect(t, s.ClientURL(), append(opts, nats.UserInfo(user, "s3cret"))...)
}

// deeds are the actions of programs, by their names in the documentation's comments.
var deeds = map[string]func(ctx context.Context, s *natskv.Store) error{
	"read": func(ctx context.Context, s *natskv.Store) error { return failure(s.Read(ctx, testKey)) },
	"write": func(ctx context.Context, s *natskv.Store) error {
		e, err := s.Read(ctx, testKey)
		if err == nil {
			_, err = s.CompareAndSwap(ctx, testKey, e.Version, []byte("v"))
		}
		return err
	},
	"watch": func(ctx context.Context, s *natskv.Store) error {
		stop, err := s.Watch(ctx, testKey, func(driver.Entry) {})
		if err == nil {
			stop()
		}
		return err
	},
	"announce": func(ctx context.Context, s *natskv.Store) error {
		stop, err := s.Announce(ctx, testKey, says("a"))
		if err == nil {
			stop()
		}
		return err
	},
	"ask":     func(ctx context.Context, s *natskv.Store) error { return failure(s.Candidates(ctx, testKey)) },
	"inspect": func(ctx context.Context, s *natskv.Store) error { return failure(s.Inspect(ctx, testLease)) },
	"check":   func(ctx context.Context, s *natskv.Store) error { return s.CheckRights(ctx, testKey) },
}

// roles are the permitted actions of the documentation's users.
var roles = map[string][]string{
	"candidate": {"read", "check", "write", "watch", "announce", "ask", "inspect"},
	"observer":  {"read", "watch", "ask", "inspect"},
	"founder":   {"create", "read", "check", "write", "watch", "announce", "ask", "inspect"},
}

// fails has the actions that need a right, by the right without its wildcards.
var fails = map[string][]string{
	"$KV.ELECTIONS.":                        {"check", "write"},
	"$JS.API.STREAM.MSG.GET.KV_ELECTIONS":   {"read", "write"},
	"$JS.API.STREAM.INFO.KV_ELECTIONS":      {"open", "create"},
	"$JS.API.CONSUMER.CREATE.KV_ELECTIONS.": {"watch"},
	"$JS.FC.KV_ELECTIONS.":                  {"watch"},
	"$JS.API.INFO":                          {"create"},
	"tenure.candidates.ELECTIONS":           {"announce", "ask"},
	"$JS.API.STREAM.CREATE.KV_ELECTIONS":    {"create"},
	"_INBOX.":                               {"open", "create"},
}

// TestDocumentedRights: each user can do everything that its role needs, without a single error
// from the server. An observer cannot write.
func TestDocumentedRights(t *testing.T) {
	t.Parallel()
	for role, may := range roles {
		for _, opts := range [][]natskv.Option{nil, {natskv.OwnConnection()}} {
			t.Run(fmt.Sprint(role, len(opts)), func(t *testing.T) {
				s := configured(t, documented(t), withUser(t, role, nil))
				if slices.Contains(may, "create") {
					opts = append(opts, natskv.Create())
				} else {
					addBucket(t, natsnet.JetStream(t, login(t, s, "all")), named("ELECTIONS"))
				}
				var complaints natsnet.Errors
				store := openStore(t, natsnet.JetStream(t, login(t, s, role, complaints.OfServer())), "ELECTIONS", opts...)
				for deed, do := range deeds {
					err := undisturbed(wait.Context(t), func(ctx context.Context) error { return do(ctx, store) })
					if slices.Contains(may, deed) && err != nil {
						t.Errorf("%s: %v", deed, err)
					}
					if !slices.Contains(may, deed) && !errors.Is(err, driver.ErrDenied) {
						t.Errorf("%s: %v; want it to be denied", deed, err)
					}
				}
				if role != "observer" && len(complaints.All()) > 0 {
					t.Errorf("the server complained: %v", complaints.All())
				}
			})
		}
	}
}

// takings are the two ways in which a right can be missing.
var takings = map[string]func(p *server.Permissions, right string){
	"without": func(p *server.Permissions, right string) {
		other := func(r string) bool { return r == right }
		p.Publish.Allow = slices.DeleteFunc(p.Publish.Allow, other)
		p.Subscribe.Allow = append(slices.DeleteFunc(p.Subscribe.Allow, other), "elsewhere.>")
	},
	"denied": func(p *server.Permissions, right string) {
		if slices.Contains(p.Subscribe.Allow, right) {
			p.Subscribe.Deny = []string{right}
		}
		if slices.Contains(p.Publish.Allow, right) {
			p.Publish.Deny = []string{right}
		}
	},
}

// TestMissingRights removes each right in turn. The server answers none of these requests.
func TestMissingRights(t *testing.T) {
	tried := map[string]bool{}
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		for _, right := range rightsOf(t, role) {
			bare := bareRight(t, right)
			tried[bare] = true
			for how, take := range takings {
				for i, opts := range [][]natskv.Option{nil, {natskv.OwnConnection()}} {
					if (how == "denied") != (i == 0) && testing.Short() {
						continue // one of the two ways for each
					}
					t.Run(fmt.Sprintf("%s %s %s %d", role, how, right, len(opts)), func(t *testing.T) {
						t.Parallel()
						s := configured(t, documented(t), withUser(t, role, func(p *server.Permissions) { take(p, right) }))
						lackOf(t, s, role, bare, opts)
					})
				}
			}
		}
	}
	for right := range fails {
		if !tried[right] {
			t.Errorf("the documentation does not give %s", right)
		}
	}
}

// rightsOf returns the rights that the documentation gives a user.
func rightsOf(t testing.TB, user string) (rights []string) {
	configured(t, documented(t), withUser(t, user, func(p *server.Permissions) {
		rights = append(slices.Clone(p.Publish.Allow), p.Subscribe.Allow...)
	}))
	slices.Sort(rights)
	return slices.Compact(rights)
}

func bareRight(t testing.TB, right string) string {
	for bare := range fails {
		if strings.HasPrefix(right, bare) {
			return bare
		}
	}
	t.Fatalf("no test of %s", right)
	return ""
}

// lackOf requires that, without a right, each action that needs it fails with an error that names
// it. All other actions work.
func lackOf(t *testing.T, s *server.Server, role, right string, opts []natskv.Option) {
	prevented := fails[right]
	js := natsnet.JetStream(t, login(t, s, role))
	if role == "founder" {
		err := undisturbed(wait.Context(t), func(ctx context.Context) error {
			return closing(natskv.Open(ctx, js, "ELECTIONS", append(opts, natskv.Create())...))
		})
		judge(t, "create", right, prevented, err)
	}
	kv := natsnet.JetStream(t, login(t, s, "all"))
	if _, err := kv.CreateKeyValue(wait.Context(t), jetstream.KeyValueConfig{Bucket: "ELECTIONS"}); err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		t.Fatal(err)
	}
	var store *natskv.Store
	err := undisturbed(wait.Context(t), func(ctx context.Context) (err error) {
		store, err = natskv.Open(ctx, js, "ELECTIONS", opts...)
		return err
	})
	judge(t, "open", right, prevented, err)
	if err != nil {
		return
	}
	defer func() { _ = store.Close() }()
	for range 2 { // the second time the connection remembers the first
		for _, deed := range roles[role] {
			if do, ok := deeds[deed]; ok {
				judge(t, deed, right, prevented, undisturbed(wait.Context(t), func(ctx context.Context) error { return do(ctx, store) }))
			}
		}
	}
}

// closing closes a store that was opened.
func closing(s *natskv.Store, err error) error {
	if err == nil {
		err = s.Close()
	}
	return err
}

func judge(t *testing.T, deed, right string, prevented []string, err error) {
	t.Helper()
	switch {
	case !slices.Contains(prevented, deed):
		if err != nil {
			t.Errorf("%s: %v", deed, err)
		}
	case !errors.Is(err, driver.ErrDenied), !strings.Contains(err.Error(), right), !strings.Contains(err.Error(), "grant"):
		t.Errorf("%s: %v; want to be denied for lack of %s", deed, err, right)
	}
}

// TestDocumentedAnswer: a candidate answers an observer, each with the rights of its role.
func TestDocumentedAnswer(t *testing.T) {
	t.Parallel()
	s := configured(t, documented(t), withUser(t, "candidate", nil))
	addBucket(t, natsnet.JetStream(t, login(t, s, "all")), named("ELECTIONS"))
	f := &fixture{TB: t}
	f.announce(openStore(t, natsnet.JetStream(t, login(t, s, "candidate")), "ELECTIONS", natskv.OwnConnection()), testKey, "a")
	observer := openStore(t, natsnet.JetStream(t, login(t, s, "observer")), "ELECTIONS", natskv.OwnConnection())
	for range 3 {
		wait.Until(t, "the candidate answers", func() bool { return f.candidates(observer, testKey) == "a" })
	}
}

// TestManyRefusals: if all elections of a program are refused at once, each gets an error, on an
// own connection.
func TestManyRefusals(t *testing.T) {
	t.Parallel()
	s := configured(t, documented(t), withUser(t, "observer", nil))
	addBucket(t, natsnet.JetStream(t, login(t, s, "all")), named("ELECTIONS"))
	store := openStore(t, natsnet.JetStream(t, login(t, s, "observer")), "ELECTIONS", natskv.OwnConnection())
	var writes sync.WaitGroup
	for i := range 500 {
		writes.Go(func() {
			key := fmt.Sprintf("k%d", i)
			err := undisturbed(wait.Context(t), func(ctx context.Context) error {
				return failure(store.CompareAndSwap(ctx, key, "", []byte("v")))
			})
			if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "grant publish on $KV.ELECTIONS."+key) {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	writes.Wait()
}

// TestOwnInbox: with its own prefix, a user's answers cannot be read by other users.
func TestOwnInbox(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(documented(t), "_INBOX.>", "_INBOX_candidate.>")
	s := configured(t, text, withUser(t, "candidate", nil))
	addBucket(t, natsnet.JetStream(t, login(t, s, "all")), named("ELECTIONS"))
	for _, opts := range [][]natskv.Option{nil, {natskv.OwnConnection()}} {
		store := openStore(t, natsnet.JetStream(t, login(t, s, "candidate", nats.CustomInboxPrefix("_INBOX_candidate"))), "ELECTIONS", opts...)
		doAll(t, store)
		_, err := natskv.Open(wait.Context(t), natsnet.JetStream(t, login(t, s, "candidate")), "ELECTIONS", opts...)
		if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "subscribe on _INBOX.>") {
			t.Errorf("without the prefix: %v", err)
		}
	}
}

// otherPrefix returns the documented rights of clients that reach the bucket by another prefix.
func otherPrefix(t *testing.T) string {
	return strings.NewReplacer("$JS.API.", "$JS.far.API.", `"$KV.`, `"$JS.far.API.$KV.`).Replace(documented(t))
}

// TestRightsInDomain: a server in the domain checks rights after it has removed the domain from the
// subject.
func TestRightsInDomain(t *testing.T) {
	t.Parallel()
	inDomain := func(o *server.Options) { o.JetStreamDomain = "far" }
	s := configured(t, documented(t), withUser(t, "founder", nil), inDomain)
	js, err := jetstream.NewWithDomain(login(t, s, "founder"), "far")
	must(t, err)
	doAll(t, openStore(t, js, "ELECTIONS", natskv.Create(), natskv.OwnConnection()))

	misled := configured(t, otherPrefix(t), withUser(t, "founder", nil), inDomain)
	js, err = jetstream.NewWithDomain(login(t, misled, "founder"), "far")
	must(t, err)
	err = undisturbed(wait.Context(t), func(ctx context.Context) error { return closing(natskv.Open(ctx, js, "ELECTIONS")) })
	if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "grant publish on $JS.API.STREAM.INFO.KV_ELECTIONS") {
		t.Errorf("with rights on the domain's prefix: %v", err)
	}
}

// TestRightsAcrossDomains: any other server, here one with a leaf node, takes the subject as it is.
func TestRightsAcrossDomains(t *testing.T) {
	t.Parallel()
	port := FreePort(t)
	hub := configured(t, otherPrefix(t), withUser(t, "founder", nil), WithoutJetStream, func(o *server.Options) {
		o.LeafNode.Host = "127.0.0.1"
		o.LeafNode.Port = port
	})
	remote := &url.URL{Scheme: "nats-leaf", User: url.UserPassword("all", "s3cret"), Host: fmt.Sprint("127.0.0.1:", port)}
	leaf := StartServer(t, func(o *server.Options) {
		o.JetStreamDomain = "far"
		o.LeafNode.Remotes = []*server.RemoteLeafOpts{{URLs: []*url.URL{remote}}}
	})
	wait.Until(t, "the leaf is connected", func() bool { return leaf.NumLeafNodes() == 1 })
	js, err := jetstream.NewWithDomain(login(t, hub, "founder"), "far")
	must(t, err)
	wait.Until(t, "the hub knows what the leaf serves", func() bool {
		_, err := js.AccountInfo(wait.Context(t))
		return err == nil
	})
	doAll(t, openStore(t, js, "ELECTIONS", natskv.Create(), natskv.OwnConnection()))
}

func doAll(t *testing.T, s *natskv.Store) {
	t.Helper()
	for deed, do := range deeds {
		if err := undisturbed(wait.Context(t), func(ctx context.Context) error { return do(ctx, s) }); err != nil {
			t.Errorf("%s: %v", deed, err)
		}
	}
}

// imported is an account whose JetStream another account uses.
const imported = `
jetstream: {}
accounts {
	STORE {
		jetstream: enabled
		users: [ { user: all, password: s3cret } ]
		exports: [
			{ service: "$JS.API.STREAM.MSG.GET.KV_ELECTIONS" }
			{ service: "$JS.API.STREAM.INFO.KV_ELECTIONS" }
			{ service: "$JS.API.CONSUMER.CREATE.KV_ELECTIONS.>" }
			{ service: "$JS.FC.KV_ELECTIONS.>" }
			{ service: "$KV.ELECTIONS.>" }
			{ stream: "_ELECTIONS.>" }
		]
	}
	APP {
		users: [ { user: candidate, password: s3cret } ]
		imports: [
			{ service: { account: STORE, subject: "$JS.API.STREAM.MSG.GET.KV_ELECTIONS" }, to: "$JS.store.API.STREAM.MSG.GET.KV_ELECTIONS" }
			{ service: { account: STORE, subject: "$JS.API.STREAM.INFO.KV_ELECTIONS" }, to: "$JS.store.API.STREAM.INFO.KV_ELECTIONS" }
			{ service: { account: STORE, subject: "$JS.API.CONSUMER.CREATE.KV_ELECTIONS.>" }, to: "$JS.store.API.CONSUMER.CREATE.KV_ELECTIONS.>" }
			{ service: { account: STORE, subject: "$JS.FC.KV_ELECTIONS.>" } }
			{ service: { account: STORE, subject: "$KV.ELECTIONS.>" }, to: "$JS.store.API.$KV.ELECTIONS.>" }
			{ stream: { account: STORE, subject: "_ELECTIONS.>" } }
		]
	}
}`

// TestImportedBucket: the bucket is in another account, with an inbox to which its messages can be
// exported.
func TestImportedBucket(t *testing.T) {
	t.Parallel()
	s := configured(t, imported)
	f := &fixture{TB: t, js: natsnet.JetStream(t, login(t, s, "all"))}
	f.kv = addBucket(t, f.js, named("ELECTIONS"))
	js, err := jetstream.NewWithAPIPrefix(login(t, s, "candidate", nats.CustomInboxPrefix("_ELECTIONS")), "$JS.store.API")
	f.must(err)
	store := openStore(t, js, "ELECTIONS", natskv.OwnConnection())
	h := watchAll(t, store, testKey)
	e := f.read(store, testKey)
	v, err := store.CompareAndSwap(wait.Context(t), testKey, e.Version, []byte("v"))
	f.must(err)
	if e := h.await(t, v); string(e.Value) != "v" {
		t.Errorf("pushed: %+v", e)
	}
}

// TestFlowControl: the documented rights suffice for more traffic than passes without flow control,
// without a single error from the server.
func TestFlowControl(t *testing.T) {
	t.Parallel()
	f := newRightsFixture(t, candidateRights, "_INBOX.>")
	h := watchAll(t, f.open(), testKey)
	controlled, err := f.nc.SubscribeSync("$JS.FC.>")
	f.must(err)
	large := strings.Repeat("x", driver.MaxValue)
	for range 1000 {
		f.put(testKey, large)
	}
	h.await(t, versionOf(f.put(testKey, "last")))
	if _, err := controlled.NextMsg(wait.Left()); err != nil {
		t.Errorf("flow control was not asked for: %v", err)
	}
	if refused := f.refusals.All(); len(refused) > 0 {
		t.Errorf("the server complained: %q", refused)
	}
}

// The program's error handler also gets the errors that the store finds by itself.
func TestErrorHandlerOfTheProgramIsCalled(t *testing.T) {
	t.Parallel()
	f := newRightsFixture(t, observerRights, "_INBOX.>")
	s := f.open()
	for range 3 { // the second time the connection remembers the first
		f.expectDenied("swap", "grant publish on $KV.B."+testKey, func(ctx context.Context) error {
			return failure(s.CompareAndSwap(ctx, testKey, "", []byte("v")))
		})
	}
	wait.Until(t, "the user's own handler is called", func() bool { return len(f.refusals.All()) >= 3 })
}
