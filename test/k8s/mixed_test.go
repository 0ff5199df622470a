package k8s

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/k8slease"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/test/migration"
	"github.com/tenure-go/tenure/test/internal/k8sfake"
)

// roles are what this program does as a process of a test, by the value of a variable of the
// environment.
var roles = map[string]func(){}

const roleVariable = "K8S_TEST_ROLE"

// TestMain silences client-go, which logs each failed attempt.
func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	if play := roles[os.Getenv(roleVariable)]; play != nil {
		play()
		return
	}
	os.Exit(m.Run())
}

const (
	address   = "api:80"
	namespace = "test"
	name      = "billing"
	look      = 50 * time.Millisecond
	// The settings of client-go's elector are its usual ones.
	duration, deadline, retry = 15 * time.Second, 10 * time.Second, 2 * time.Second
)

// old is a process with an elector of client-go, which campaigns again after it has lost.
type old struct {
	id string
	// releases is the setting ReleaseOnCancel.
	releases bool
	cancel   context.CancelFunc
	done     chan struct{}

	mu     sync.Mutex
	now    trouble
	resume chan struct{} // closed when a pause ends
	dead   bool
	leads  bool
}

// trouble is what may happen to a process with an elector of client-go.
type trouble int

const (
	none trouble = iota
	// refused: its requests fail at once.
	refused
	// swallowed: its requests get no answer.
	swallowed
	// paused: it does nothing, as after SIGSTOP. The elector stands still in its next request, also
	// when the time for that has ended.
	paused
)

// Name returns the name for messages.
func (o *old) Name() string { return "old " + o.id }

// Leads reports whether client-go has said that it leads, and not that it has stopped. A process
// that is paused does no work.
func (o *old) Leads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leads && !o.dead && o.now != paused
}

func (o *old) set(flag *bool, to bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*flag = to
}

// suffer begins a trouble, and ends the one before.
func (o *old) suffer(next trouble) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now == paused {
		close(o.resume)
	}
	o.now, o.resume = next, make(chan struct{})
}

// End ends it. Unless it crashes, client-go may release the Lease.
func (o *old) End(crash bool) {
	if crash {
		o.set(&o.dead, true)
		o.suffer(refused)
	}
	o.cancel()
	<-o.done
}

var errCut = errors.New("the process is cut off")

// through sends requests over next as far as the trouble of the process allows.
func (o *old) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		o.mu.Lock()
		now, resume := o.now, o.resume
		o.mu.Unlock()
		switch now {
		case refused:
			return nil, errCut
		case swallowed:
			<-r.Context().Done()
			return nil, r.Context().Err()
		case paused:
			<-resume
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fleet is three processes of each kind over one API server.
type fleet struct {
	*migration.Fleet
	network *pipenet.Network
	lease   time.Duration                   // of candidates
	meddle  func(driver.Store) driver.Store // spoils the reads of candidates; may be nil
	// late is the trouble after which electors release too late; none: they do not.
	late trouble
}

// on returns the configuration of a client with connections of its own.
func on(network *pipenet.Network) *rest.Config {
	return &rest.Config{
		Host: "http://" + address, QPS: -1,
		Dial: func(ctx context.Context, _, at string) (net.Conn, error) {
			return network.DialContext(ctx, "tcp", at)
		},
	}
}

// serve serves an API server on a network until stop is called.
func serve(t testing.TB, network *pipenet.Network) (api *k8sfake.Server, stop func()) {
	t.Helper()
	api, err := k8sfake.Open("")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := network.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: api, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	return api, func() {
		cancel()
		_ = server.Close()
		<-served
	}
}

func (f *fleet) startOld(i int) {
	ctx, cancel := context.WithCancel(context.Background())
	o := &old{id: fmt.Sprint("pod-", i), releases: f.late != none || f.Draw(2) == 0, cancel: cancel, done: make(chan struct{})}
	direct := &http.Transport{DialContext: f.network.DialContext}
	client := &http.Client{Transport: o.through(direct), Timeout: deadline / 2}
	leases, err := coordination.NewForConfigAndClient(&rest.Config{
		Host: "http://" + address, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}, client)
	if err != nil {
		panic(err)
	}
	lock := lockOn(leases, namespace, o.id)
	go func() {
		defer close(o.done)
		defer direct.CloseIdleConnections()
		for ctx.Err() == nil {
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: lock, LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: retry, ReleaseOnCancel: o.releases,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(leading context.Context) {
						if leading.Err() == nil {
							o.set(&o.leads, true)
							f.Look()
						}
						<-leading.Done()
						o.set(&o.leads, false)
					},
					OnStoppedLeading: func() { o.set(&o.leads, false) },
				},
			})
		}
	}()
	f.Put(i, o)
}

// lockOn returns the lock of an elector.
func lockOn(leases *coordination.CoordinationV1Client, namespace, id string) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta: meta.ObjectMeta{Namespace: namespace, Name: name}, Client: leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: id},
	}
}

func (f *fleet) startNew(i int) {
	store, err := k8slease.New(on(f.network), namespace)
	if err != nil {
		panic(err)
	}
	line := faults.New(store, uint64(f.Between(0, time.Hour)), faults.Plan{
		Chances:  faults.Chances{faults.DelayBefore: 0.2, faults.DelayAfter: 0.2, faults.LoseAnswer: 0.03, faults.LoseRequest: 0.03},
		MaxDelay: 300 * time.Millisecond,
	})
	n := &migration.Candidate{ID: fmt.Sprint("pod-", i), Line: line, Begun: f.Look, Ended: func() { line.Wait(); _ = store.Close() }}
	var over driver.Store = line
	if f.meddle != nil {
		over = f.meddle(line)
	}
	e, err := tenure.New(over, name, tenure.Config{ID: n.ID, Lease: f.lease})
	if err != nil {
		panic(err)
	}
	n.Campaign(e)
	f.Put(3+i, n)
}

// briefly is how long an elector with ReleaseOnCancel may get no answers or be paused: see
// TestLateReleasesMakeTwoLeaders.
const briefly = duration - deadline - retry - time.Second

// happen restarts a process, cuts it off, pauses it, or asks it to hand over.
func (f *fleet) happen(i int) {
	p := f.At(i)
	if f.Draw(2) == 0 {
		f.End(i, f.Draw(2) == 0)
		time.Sleep(f.Between(0, 20*time.Second))
		if i < 3 {
			f.startOld(i)
		} else {
			f.startNew(i - 3)
		}
		return
	}
	switch p := p.(type) {
	case *old:
		what, most := refused+trouble(f.Draw(3)), 30*time.Second
		switch {
		case f.late != none:
			what = f.late
		case p.releases && what != refused:
			most = briefly
		}
		p.suffer(what)
		time.Sleep(f.Between(0, most))
		p.suffer(none)
	case *migration.Candidate:
		undo := p.Trouble(f.Draw(2) == 0, 10*time.Second)
		time.Sleep(f.Between(0, 30*time.Second))
		undo()
	}
}

// judge leaves to client-go what happens between its own electors.
func judge(p, q migration.Process) string {
	_, a := p.(*old)
	_, b := q.(*old)
	if a && b {
		return ""
	}
	return fmt.Sprintf("%s and %s lead at once", p.Name(), q.Name())
}

// migrations is a small number by default. The soak sets a larger one.
var migrations = flag.Int("migrations", 6, "how `many` fleets TestRollingMigration replaces")

// migrate runs a whole migration in virtual time.
func migrate(t *testing.T, seed uint64, f *fleet) (r migration.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f.network = new(pipenet.Network)
		_, stop := serve(t, f.network)
		f.Fleet = migration.New(seed, look, judge)
		f.Migrate(40*time.Second, 2*time.Minute, f.startOld, f.startNew, f.happen)
		r = f.Close()
		stop()
	})
	return r
}

// The leases are shorter than that of client-go, equal to it, and longer.
var leases = []time.Duration{3 * time.Second, duration, 2 * duration}

// TestRollingMigration: processes with electors of client-go are replaced one by one by candidates
// of Tenure. Meanwhile processes of both kinds crash, restart and are cut off, and electors of
// client-go are paused. No two lead at once, unless both are of client-go.
func TestRollingMigration(t *testing.T) {
	var mu sync.Mutex
	var sum migration.Report
	t.Run("fleets", func(t *testing.T) { // it ends when all tests in it have ended
		for seed := range uint64(*migrations) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				r := migrate(t, seed, &fleet{lease: leases[seed%3]})
				r.Require(t)
				mu.Lock()
				defer mu.Unlock()
				sum.Add(r)
			})
		}
	})
	t.Logf("%v", sum)
	if sum.OldToNew < *migrations || sum.NewToOld < *migrations/4 {
		t.Errorf("%v: nothing is proved by that", sum)
	}
}

// hasty shows the leases of foreign leaders as shorter than they are.
type hasty struct{ driver.Store }

var millis = regexp.MustCompile(`"leaseMillis":15000,"incarnation":"lease:`)

func (h hasty) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := h.Store.Read(ctx, key)
	e.Value = millis.ReplaceAll(e.Value, []byte(`"leaseMillis":1,"incarnation":"lease:`))
	return e, err
}

// TestHastyCandidatesAreFound: candidates that do not wait for the duration in a Lease lead beside
// a leader of client-go. Otherwise TestRollingMigration would prove nothing.
func TestHastyCandidatesAreFound(t *testing.T) {
	for seed := range uint64(20) {
		f := &fleet{lease: leases[0], meddle: func(s driver.Store) driver.Store { return hasty{s} }}
		if r := migrate(t, seed, f); len(r.Faults) > 0 {
			t.Log(r.Faults[0])
			return
		}
	}
	t.Error("no two leaders at once")
}

// TestLateReleasesMakeTwoLeaders: an elector of client-go with ReleaseOnCancel leads beside a
// candidate in two cases, as docs/kubernetes.md says. It stops only after its last request, which
// may wait for its answer for a second RenewDeadline. And after a pause it empties the Lease of the
// next leader. So the limits in TestRollingMigration are necessary, and it finds such leaders.
func TestLateReleasesMakeTwoLeaders(t *testing.T) {
	for name, late := range map[string]trouble{"without an answer": swallowed, "after a pause": paused} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(40) {
				if r := migrate(t, seed, &fleet{lease: leases[0], late: late}); len(r.Faults) > 0 {
					t.Log(seed, r.Faults[0])
					return
				}
			}
			t.Error("no two leaders at once: docs/kubernetes.md warns without need")
		})
	}
}

// TestElectorSeesEachRenewal: an elector of client-go sees each renewal of a leader of Tenure, also
// the second one of a second, and one after the leader's clock was set back.
func TestElectorSeesEachRenewal(t *testing.T) {
	api, err := k8sfake.Open("")
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: "http://" + address, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, r)
		return answer.Result(), nil
	})}
	config.ContentType = "application/json"
	store, err := k8slease.New(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lock := lockOn(leases, namespace, "")
	var version driver.Version
	var last []byte
	claimed := time.Date(2030, 1, 2, 3, 4, 5, 1e8, time.UTC)
	for seq, since := range []time.Duration{0, 300 * time.Millisecond, 600 * time.Millisecond, -5 * time.Second} {
		record := fmt.Sprintf(`{"leaderID":"a","lastUpdated":%q,"term":7,"leaseMillis":2000,"incarnation":"c0ffee","seq":%d,"nonce":"n%d"}`,
			claimed.Add(since).Format(time.RFC3339Nano), seq, seq)
		if version, err = store.CompareAndSwap(t.Context(), name, version, []byte(record)); err != nil {
			t.Fatal(err)
		}
		_, now, err := lock.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(now, last) {
			t.Errorf("client-go does not see the renewal %v after the claim: %s", since, now)
		}
		last = now
	}
}
