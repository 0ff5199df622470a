package s3lect_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/certificates"
)

const lockfilePath = "leader/my-group.json"

// counted counts the requests to the storage.
type counted struct {
	s3lect.Storage
	gets, puts atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string) ([]byte, string, error) {
	c.gets.Add(1)
	return c.Storage.Get(ctx, key)
}

func (c *counted) PutIfMatch(ctx context.Context, key string, data []byte, etag string) error {
	c.puts.Add(1)
	return c.Storage.PutIfMatch(ctx, key, data, etag)
}

func options(store driver.Store, id string) s3lect.S3ElectorOptions {
	return s3lect.S3ElectorOptions{
		Config:  &s3lect.ElectorConfig{LockfilePath: lockfilePath, ServerID: id, ServerAddr: "127.0.0.1:1"},
		Storage: plain{s3lect.ToStorage(store)}, Logger: slog.New(slog.DiscardHandler),
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustElector returns an elector, which is stopped after the test.
func mustElector(t *testing.T, opts s3lect.S3ElectorOptions) *s3lect.S3Elector {
	t.Helper()
	e, err := s3lect.NewS3Elector(opts)
	must(t, err)
	t.Cleanup(func() { mustStop(t, e) })
	return e
}

func mustStart(t *testing.T, e *s3lect.S3Elector) {
	t.Helper()
	must(t, e.Start(t.Context()))
}

func mustStop(t *testing.T, e *s3lect.S3Elector) {
	t.Helper()
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
}

// startLeading starts an elector, and waits until it leads.
func startLeading(t *testing.T, e *s3lect.S3Elector) {
	t.Helper()
	mustStart(t, e)
	mustLead(t, e, time.Minute)
}

// mustLead fails unless the elector leads within this time.
func mustLead(t *testing.T, e *s3lect.S3Elector, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if err := e.WaitForLeadership(ctx); err != nil {
		t.Fatalf("%s does not lead within %v: %v", e.GetConfig().ServerID, within, err)
	}
}

func bubble(t *testing.T, test func(t *testing.T, store *memory.Polled)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, memory.NewPolled()) })
}

func TestElectorsTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		a, b := mustElector(t, options(store, "a")), mustElector(t, options(store, "b"))
		if a.IsLeader() || a.LeaderID() != "" {
			t.Error("leads before it started")
		}
		startLeading(t, a)
		mustStart(t, b)
		s, err := b.WaitForNextElection(t.Context(), time.Time{})
		if err != nil || s.IsLeader || s.LeaderID != "a" || s.LeaderAddr != "127.0.0.1:1" || s.ServerID != "b" || s.LockfilePath != lockfilePath {
			t.Errorf("b sees %+v, %v", s, err)
		}
		if s := a.GetLeadershipStatus(); !s.IsLeader || s.LeaderID != "a" || time.Since(s.LastElectionTime) > time.Minute || s.LeaderLastSeen.IsZero() {
			t.Errorf("a sees %+v", s)
		}
		time.Sleep(time.Hour)
		if !a.IsLeader() || b.IsLeader() {
			t.Error("leadership moved without a reason")
		}
		began := time.Now()
		mustStop(t, a)
		if a.IsLeader() {
			t.Error("a leads after it stopped")
		}
		mustLead(t, b, 16*time.Second)
		t.Logf("b leads %v after a stopped", time.Since(began))
		if s := b.GetLeadershipStatus(); s.LastElectionTime.Before(began) {
			t.Errorf("elected at %v", s.LastElectionTime)
		}
	})
}

func TestAcquireHookThatFailsResigns(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		var diary []string
		var mu sync.Mutex
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			diary = append(diary, s)
		}
		opts := options(store, "a")
		var a *s3lect.S3Elector
		opts.Config.OnAcquireLeadership = func(context.Context) error {
			note("acquire")
			if !a.IsLeader() {
				t.Error("is not leader within the hook")
			}
			return errors.New("no network interface")
		}
		opts.Config.OnLoseLeadership = func(ctx context.Context) error {
			note("lose")
			if a.IsLeader() || ctx.Err() != nil {
				t.Errorf("in the lose hook: leader %v, %v", a.IsLeader(), ctx.Err())
			}
			return errors.New("nor was there one")
		}
		hooks := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(diary)
		}
		a = mustElector(t, opts)
		b := mustElector(t, options(store, "b"))
		mustStart(t, a)
		for s := a.GetLeadershipStatus(); len(hooks()) < 2 || s.LeaderID != ""; s = a.GetLeadershipStatus() {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		if s := a.GetLeadershipStatus(); s.IsLeader || !s.LastElectionTime.IsZero() {
			t.Errorf("after its hook failed: %+v", s)
		}
		time.Sleep(5 * time.Minute)
		if n := len(hooks()) / 2; n < 3 || n > 6 {
			t.Errorf("%d attempts in 5 minutes: others need a turn, and it is to try again", n)
		}
		mustStart(t, b)
		mustLead(t, b, 31*time.Second)
		before := len(hooks())
		time.Sleep(time.Hour)
		if !b.IsLeader() || len(hooks()) != before || !strings.HasPrefix(strings.Join(hooks(), " "), "acquire lose acquire lose") {
			t.Errorf("b leads: %v; hooks of a: %v", b.IsLeader(), hooks())
		}
		mustStop(t, b)
		opts.Config.OnAcquireLeadership = nil
		if err := a.UpdateConfig(*opts.Config); err != nil {
			t.Error(err)
		}
		mustLead(t, a, 4*time.Minute)
	})
}

// The lease is released after the hook, not before. The store pushes, so b leads as soon as it may.
func TestNoSuccessorBeforeTheLoseHookReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, other := options(nil, "a"), options(nil, "b")
		opts.Storage, other.Storage, opts.Store = nil, nil, memory.New()
		other.Store = opts.Store
		var working atomic.Bool
		opts.Config.OnLoseLeadership = func(ctx context.Context) error {
			working.Store(true)
			defer working.Store(false)
			time.Sleep(4 * time.Second)
			return ctx.Err()
		}
		a, b := mustElector(t, opts), mustElector(t, other)
		startLeading(t, a)
		mustStart(t, b)
		time.Sleep(time.Minute)
		began := time.Now()
		go a.Stop()
		mustLead(t, b, 5*time.Second)
		if took := time.Since(began); working.Load() || took < 4*time.Second {
			t.Errorf("b leads after %v, hook at work: %v", took, working.Load())
		}
	})
}

// If a hook ignores its context, no process may believe that this one still leads.
func TestLeadershipFollowsTheLeaseWhileAHookHangs(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		line := faults.New(store, 1, faults.Plan{})
		opts := options(line, "a")
		wake := make(chan struct{})
		opts.Config.OnAcquireLeadership = func(context.Context) error { <-wake; return nil }
		a := mustElector(t, opts)
		mustStart(t, a)
		for !a.IsLeader() {
			time.Sleep(time.Second)
		}
		handler := s3lect.NewLeadershipHandler(a, nil)
		line.Partition()
		time.Sleep(15 * time.Second)
		if s := a.GetLeadershipStatus(); a.IsLeader() || s.IsLeader {
			t.Errorf("leads without a lease: %+v", s)
		}
		if w := ask(handler, http.MethodGet); w.Code != http.StatusNotFound {
			t.Errorf("serves its peers %s", w.Body)
		}
		line.Heal()
		close(wake)
	})
}

func TestStopGivesUpOnAHookThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		opts := options(store, "a")
		wake := make(chan struct{})
		opts.Config.OnLoseLeadership = func(context.Context) error { <-wake; return nil }
		a := mustElector(t, opts)
		startLeading(t, a)
		began := time.Now()
		if err := a.Stop(); err == nil || time.Since(began) > 15*time.Second {
			t.Errorf("Stop: %v after %v", err, time.Since(began))
		}
		close(wake)
	})
}

// S3lect lets a leader that cannot reach the storage go on without end.
func TestLeaderThatIsCutOffStopsInTime(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		line := faults.New(store, 1, faults.Plan{})
		opts := options(line, "a")
		lost := make(chan time.Time, 1)
		opts.Config.OnLoseLeadership = func(context.Context) error { lost <- time.Now(); return nil }
		a := mustElector(t, opts)
		startLeading(t, a)
		time.Sleep(time.Minute)
		line.Partition()
		cut := time.Now()
		if took := (<-lost).Sub(cut); took > 15*time.Second || a.IsLeader() {
			t.Errorf("reported %v after the cut; leads: %v", took, a.IsLeader())
		}
		time.Sleep(time.Minute)
		if s := a.GetLeadershipStatus(); s.ConsecutiveFails < 3 || s.IsLeader {
			t.Errorf("status %+v", s)
		}
		line.Heal()
		mustLead(t, a, time.Minute)
		if s := a.GetLeadershipStatus(); s.ConsecutiveFails != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

func TestWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		a := mustElector(t, options(store, "a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.WaitForLeadership(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("not started: %v", err)
		}
		if _, err := a.WaitForNextElection(ctx, time.Time{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("not started: %v", err)
		}
		mustStart(t, a)
		if err := a.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		mustLead(t, a, time.Minute)
		now := time.Now()
		s, err := a.WaitForNextElection(t.Context(), now)
		if took := time.Since(now); err != nil || !s.IsLeader || took == 0 || took > 6*time.Second {
			t.Errorf("next election after %v: %+v, %v", took, s, err)
		}
		waiting := make(chan error, 1)
		b := mustElector(t, options(store, "b"))
		mustStart(t, b)
		go func() { waiting <- b.WaitForLeadership(context.Background()) }()
		time.Sleep(time.Second)
		mustStop(t, b)
		if err := <-waiting; err == nil {
			t.Error("leads after it stopped")
		}
		if _, err := b.WaitForNextElection(t.Context(), time.Now()); err == nil {
			t.Error("reports an election after it stopped")
		}
	})
}

func TestContextEndsAnElector(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		a, b := mustElector(t, options(store, "a")), mustElector(t, options(store, "b"))
		ctx, cancel := context.WithCancel(t.Context())
		must(t, a.Start(ctx))
		mustLead(t, a, time.Minute)
		mustStart(t, b)
		cancel()
		mustLead(t, b, 16*time.Second)
		if a.IsLeader() {
			t.Error("a leads without a context")
		}
	})
}

// At most four reads a minute, and per interval one write with the read that returns its ETag.
func TestStableOperation(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		leader, follower := &counted{Storage: plain{s3lect.ToStorage(store)}}, &counted{Storage: plain{s3lect.ToStorage(store)}}
		opts := options(store, "a")
		opts.Storage = leader
		a := mustElector(t, opts)
		startLeading(t, a)
		opts = options(store, "b")
		opts.Storage = follower
		b := mustElector(t, opts)
		mustStart(t, b)
		time.Sleep(time.Minute)
		w, r, f := leader.puts.Load(), leader.gets.Load(), follower.gets.Load()
		time.Sleep(time.Hour)
		w, r, f = leader.puts.Load()-w, leader.gets.Load()-r, follower.gets.Load()-f
		t.Logf("in an hour: %d puts and %d gets of the leader, %d gets of a follower", w, r, f)
		if w > 721 || r > w+1 || f > 4*60+5 {
			t.Error("more than was promised")
		}
	})
}

func TestSettingsChangeWhileItLeads(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		a := mustElector(t, options(store, "a"))
		startLeading(t, a)
		elected := a.GetLeadershipStatus().LastElectionTime
		cfg := *a.GetConfig()
		if cfg.FrequentInterval != 5*time.Second || cfg.InfrequentInterval != 30*time.Second || cfg.LeaderTimeout != 15*time.Second ||
			cfg.PeerTimeout != 3*time.Second || cfg.PeerHealthPath != "/health/leadership" {
			t.Errorf("defaults %+v", cfg)
		}
		cfg.LeaderTimeout, cfg.FrequentInterval, cfg.ServerAddr = 30*time.Second, 10*time.Second, "127.0.0.1:2"
		must(t, a.UpdateConfig(cfg))
		if err := a.EnablePeerMode(nil); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		var record struct {
			LeaderAddr  string
			LeaseMillis int
		}
		entry, _ := store.Read(t.Context(), lockfilePath)
		if err := json.Unmarshal(entry.Value, &record); err != nil || record.LeaseMillis != 30000 || record.LeaderAddr != "127.0.0.1:2" {
			t.Errorf("the lockfile is %s", entry.Value)
		}
		if s := a.GetLeadershipStatus(); !s.IsLeader || s.LastElectionTime != elected {
			t.Errorf("leadership was given up: %+v", s)
		}
		for name, change := range map[string]func(*s3lect.ElectorConfig){
			"lockfile": func(c *s3lect.ElectorConfig) { c.LockfilePath = "x" }, "id": func(c *s3lect.ElectorConfig) { c.ServerID = "x" },
			"path": func(c *s3lect.ElectorConfig) { c.PeerHealthPath = "x" }, "timeout": func(c *s3lect.ElectorConfig) { c.PeerTimeout = 1 },
			"CA": func(c *s3lect.ElectorConfig) { c.PeerCACert = []byte("x") }, "address": func(c *s3lect.ElectorConfig) { c.ServerAddr = "" },
			"interval": func(c *s3lect.ElectorConfig) { c.FrequentInterval = time.Minute },
		} {
			next := *a.GetConfig()
			change(&next)
			if err := a.UpdateConfig(next); err == nil {
				t.Errorf("%s: changed", name)
			}
		}
		if now := *a.GetConfig(); !now.PeerMode || now.LeaderTimeout != 30*time.Second || now.ServerAddr != "127.0.0.1:2" {
			t.Errorf("settings %+v", now)
		}
	})
}

func TestWrongOptions(t *testing.T) {
	cases := map[string]func(*s3lect.S3ElectorOptions){
		"no config":     func(o *s3lect.S3ElectorOptions) { o.Config = nil },
		"no lockfile":   func(o *s3lect.S3ElectorOptions) { o.Config.LockfilePath = "" },
		"no id":         func(o *s3lect.S3ElectorOptions) { o.Config.ServerID = "" },
		"no address":    func(o *s3lect.S3ElectorOptions) { o.Config.ServerAddr = "" },
		"no storage":    func(o *s3lect.S3ElectorOptions) { o.Storage = nil },
		"both":          func(o *s3lect.S3ElectorOptions) { o.Store = memory.New() },
		"short timeout": func(o *s3lect.S3ElectorOptions) { o.Config.LeaderTimeout = time.Second },
		"rare renewals": func(o *s3lect.S3ElectorOptions) { o.Config.FrequentInterval = 15 * time.Second },
		"bad path":      func(o *s3lect.S3ElectorOptions) { o.Config.PeerHealthPath = "/a b" },
		"bad CA":        func(o *s3lect.S3ElectorOptions) { o.Config.PeerCACert = []byte("x") },
		"bad skew":      func(o *s3lect.S3ElectorOptions) { o.MaxSkew = time.Hour },
	}
	for name, spoil := range cases {
		opts := options(memory.NewPolled(), "a")
		spoil(&opts)
		if e, err := s3lect.NewS3Elector(opts); err == nil || e != nil {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
}

// Two renewals must fit into the timeout, or each slow request ends leadership. An error names the
// smallest timeout, which is accepted.
func TestTwoRenewalsFitIntoTheTimeout(t *testing.T) {
	cases := []struct {
		interval, timeout time.Duration
		least             string // empty: accepted
	}{
		{5 * time.Second, 5500 * time.Millisecond, "10.4s"},
		{5 * time.Second, 6 * time.Second, "10.4s"},
		{5 * time.Second, 10400 * time.Millisecond, ""},
		{5 * time.Second, 15 * time.Second, ""},
		{10 * time.Second, 15 * time.Second, "20.6s"},
		{10 * time.Second, 20600 * time.Millisecond, ""},
		{time.Second, 2 * time.Second, "2.1s"},
		{time.Second, 2100 * time.Millisecond, ""},
		{900 * time.Millisecond, 2 * time.Second, ""},
	}
	for _, c := range cases {
		opts := options(memory.NewPolled(), "a")
		opts.Config.FrequentInterval, opts.Config.LeaderTimeout = c.interval, c.timeout
		_, err := s3lect.NewS3Elector(opts)
		mustName(t, err, c.interval, c.timeout, c.least)
		a := mustElector(t, options(memory.NewPolled(), "a"))
		cfg := *a.GetConfig()
		cfg.FrequentInterval, cfg.LeaderTimeout = c.interval, c.timeout
		mustName(t, a.UpdateConfig(cfg), c.interval, c.timeout, c.least)
	}
}

// mustName requires an error with both settings and the smallest timeout, or no error if least is
// empty.
func mustName(t *testing.T, err error, interval, timeout time.Duration, least string) {
	t.Helper()
	if least == "" {
		if err != nil {
			t.Errorf("%v within %v: %v", interval, timeout, err)
		}
		return
	}
	for _, part := range []string{
		"LeaderTimeout is " + timeout.String(), "FrequentInterval " + interval.String(), "at least " + least,
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v within %v: %v; want %q", interval, timeout, err, part)
		}
	}
}

// If only a path that names a bucket is given, the AWS SDK's own configuration is used.
func TestStorageFromTheEnvironment(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-central-1")
	opts := options(memory.NewPolled(), "a")
	opts.Storage, opts.Config.LockfilePath = nil, "s3://my-bucket/leader/my-group.json"
	e := mustElector(t, opts)
	if path := e.GetLeadershipStatus().LockfilePath; path != "s3://my-bucket/leader/my-group.json" {
		t.Errorf("path %s", path)
	}
	opts.Config.LockfilePath = "s3://my-bucket"
	if _, err := s3lect.NewS3Elector(opts); err == nil {
		t.Error("a bucket without a key")
	}
}

// refused denies reads until the test allows them.
type refused struct {
	driver.Store
	open atomic.Bool
}

func (r *refused) Read(ctx context.Context, key string) (driver.Entry, error) {
	if !r.open.Load() {
		return driver.Entry{}, driver.ErrDenied
	}
	return r.Store.Read(ctx, key)
}

// Like S3lect, it keeps trying without end.
func TestElectorTriesAgainAfterItWasDenied(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Polled) {
		door := &refused{Store: store}
		opts := options(store, "a")
		opts.Storage, opts.Store = nil, door
		a := mustElector(t, opts)
		mustStart(t, a)
		time.Sleep(time.Hour)
		door.open.Store(true)
		mustLead(t, a, time.Minute)
	})
}

func ask(h http.HandlerFunc, method string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h(w, httptest.NewRequest(method, "/health/leadership", nil))
	return w
}

func TestHandlerAnswersOnlyForTheLeader(t *testing.T) {
	for name, pushes := range map[string]bool{"over a storage": false, "over a store that pushes": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				opts := options(store, "a")
				if pushes {
					opts.Storage, opts.Store = nil, store
				}
				a := mustElector(t, opts)
				handler := s3lect.NewLeadershipHandler(a, nil)
				if w := ask(handler, http.MethodGet); w.Code != http.StatusNotFound {
					t.Errorf("before it leads: %d", w.Code)
				}
				startLeading(t, a)
				w := ask(handler, http.MethodGet)
				var record s3lect.LeaderRecord
				if err := json.Unmarshal(w.Body.Bytes(), &record); w.Code != http.StatusOK || err != nil {
					t.Fatalf("while it leads: %d %s", w.Code, w.Body)
				}
				if id, _, _ := strings.Cut(record.LeaderID, "#"); id != "a" || record.LeaderAddr != "127.0.0.1:1" || record.LastUpdated.IsZero() {
					t.Errorf("serves %+v", record)
				}
				if w := ask(handler, http.MethodPost); w.Code != http.StatusMethodNotAllowed {
					t.Errorf("to a POST: %d", w.Code)
				}
				mustStop(t, a)
				if w := ask(handler, http.MethodGet); w.Code != http.StatusNotFound {
					t.Errorf("after it led: %d", w.Code)
				}
			})
		})
	}
}

// certified returns a certificate for 127.0.0.1, and its authority.
func certified(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	ca, cert, key := certificates.New(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	must(t, err)
	pem, err := os.ReadFile(ca)
	must(t, err)
	return pair, pem
}

func TestHealthServerIsChecked(t *testing.T) {
	cert, _ := certified(t)
	a := mustElector(t, options(memory.NewPolled(), "a"))
	for name, cfg := range map[string]s3lect.HealthServerConfig{
		"no address":     {Certificate: cert, Elector: a},
		"no elector":     {Certificate: cert, BindAddress: "127.0.0.1:0"},
		"no certificate": {Elector: a, BindAddress: "127.0.0.1:0"},
	} {
		if h, err := s3lect.NewHealthServer(cfg); err == nil || h != nil {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
	h, err := s3lect.NewHealthServer(s3lect.HealthServerConfig{Certificate: cert, Elector: a, BindAddress: "127.0.0.1:99999"})
	must(t, err)
	if err := h.Start(t.Context()); err == nil {
		t.Error("listens on a port that cannot be")
	}
	if err := h.Stop(t.Context()); err != nil || h.Addr() != nil {
		t.Errorf("not started: %v, %v", h.Addr(), err)
	}
}

// ownElector is a program's own elector. The handler calls only its status.
type ownElector struct {
	s3lect.Elector
	status s3lect.LeadershipStatus
}

func (o ownElector) GetLeadershipStatus() *s3lect.LeadershipStatus { return &o.status }

func TestHandlerAroundAnotherElector(t *testing.T) {
	seen := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	status := s3lect.LeadershipStatus{LeaderID: "a", LeaderAddr: "10.0.0.1:8443", LeaderLastSeen: seen}
	for leads, code := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		status.IsLeader = leads
		w := ask(s3lect.NewLeadershipHandler(ownElector{status: status}, nil), http.MethodGet)
		if w.Code != code || leads && !strings.Contains(w.Body.String(), `"lastUpdated":"2030-01-02T03:04:05Z"`) {
			t.Errorf("leader %v: %d %s", leads, w.Code, w.Body)
		}
	}
}

func TestConfigureOverridesOtherSettings(t *testing.T) {
	opts := options(memory.NewPolled(), "a")
	opts.Configure = func(c *tenure.Config) { c.Lease = time.Millisecond }
	if _, err := s3lect.NewS3Elector(opts); err == nil {
		t.Error("was not asked")
	}
}
