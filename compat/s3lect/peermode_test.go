//go:build integration

package s3lect_test

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// member is an elector with its own server.
type member struct {
	*s3lect.S3Elector
	storage *counted
	server  *s3lect.HealthServer
}

// The lease is longer than the stalls of a busy machine, because these tests are about pushes.
const (
	longLease = 30 * time.Second
	interval  = 500 * time.Millisecond
)

// resigned is the lockfile of an S3lect elector that has resigned. After it the first candidate
// leads at once.
const resigned = `{"leaderID":"old","leaderAddr":"","lastUpdated":"0001-01-01T00:00:00Z"}`

// resignedStore returns a store with that lockfile. It does not push.
func resignedStore() driver.Store {
	s := memory.NewPolled()
	s.Put(lockfilePath, []byte(resigned))
	return s
}

func join(t *testing.T, store driver.Store, id string, cert tls.Certificate, change func(*s3lect.S3ElectorOptions)) member {
	t.Helper()
	m := member{storage: &counted{Storage: plain{s3lect.ToStorage(store)}}}
	opts := options(store, id)
	opts.Storage = m.storage
	opts.Config.LeaderTimeout, opts.Config.FrequentInterval = longLease, interval
	opts.Config.InfrequentInterval, opts.Config.PeerMode = interval, true
	opts.Config.ServerAddr = "127.0.0.1:0"
	if change != nil {
		change(&opts)
	}
	m.S3Elector = mustElector(t, opts)
	var err error
	m.server, err = s3lect.NewHealthServer(s3lect.HealthServerConfig{
		BindAddress: opts.Config.ServerAddr, Certificate: cert, Elector: m.S3Elector, Logger: opts.Logger,
	})
	must(t, err)
	must(t, m.server.Start(t.Context()))
	cfg := *m.GetConfig()
	cfg.ServerAddr = m.server.Addr().String()
	must(t, m.UpdateConfig(cfg))
	t.Cleanup(func() {
		ctx, cancel := wait.Background()
		defer cancel()
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
		if err := m.server.Stop(ctx); err != nil {
			t.Errorf("the server of %s: %v", id, err)
		}
	})
	return m
}

// quiet waits until the elector has received several renewals in a row without a read in between.
func (m member) quiet(t *testing.T) {
	t.Helper()
	ctx := wait.Context(t)
	for {
		before := m.storage.gets.Load()
		for range 4 {
			if _, err := m.WaitForNextElection(ctx, time.Now()); err != nil {
				t.Fatalf("reads go on, %d of them: %v", m.storage.gets.Load(), err)
			}
		}
		if m.storage.gets.Load() == before {
			return
		}
	}
}

// reads waits until the elector has read n more times, as it does without pushes.
func (m member) reads(t *testing.T, n int64) {
	t.Helper()
	want := m.storage.gets.Load() + n
	wait.Until(t, fmt.Sprintf("%d more reads, since it cannot know the leader", n), func() bool {
		return m.storage.gets.Load() >= want
	})
}

func TestPeersReceivePushesFromTheLeader(t *testing.T) {
	t.Parallel()
	store := resignedStore()
	cert, ca := certified(t)
	peers := func(o *s3lect.S3ElectorOptions) { o.Config.PeerCACert = ca }
	a := join(t, store, "a", cert, peers)
	mustStart(t, a.S3Elector)
	mustLead(t, a.S3Elector, wait.Left())
	b := join(t, store, "b", cert, func(o *s3lect.S3ElectorOptions) { o.Config.PeerMode = false })
	mustStart(t, b.S3Elector)
	if _, err := b.WaitForNextElection(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	must(t, b.EnablePeerMode(ca))
	b.quiet(t)
	began := time.Now()
	mustStop(t, a.S3Elector)
	mustLead(t, b.S3Elector, wait.Left())
	t.Logf("b leads %v after a was asked to stop", time.Since(began))
}

// A follower that cannot trust the leader's certificate reads, and can still take over.
func TestPushesOfUntrustedPeersAreIgnored(t *testing.T) {
	t.Parallel()
	cert, ca := certified(t)
	_, other := certified(t)
	cases := []struct {
		name    string
		leader  string // its address
		trusted []byte
	}{
		{"another authority", "127.0.0.1:0", other},
		{"another host", "127.0.0.2:0", ca},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := resignedStore()
			at := func(address string, authority []byte) func(*s3lect.S3ElectorOptions) {
				return func(o *s3lect.S3ElectorOptions) {
					o.Config.ServerAddr = address
					// Reads are a part of the lease apart. It does no harm if a leader loses this
					// one.
					o.Config.PeerCACert, o.Config.LeaderTimeout = authority, 2*time.Second
				}
			}
			a := join(t, store, "a", cert, at(c.leader, ca))
			mustStart(t, a.S3Elector)
			mustLead(t, a.S3Elector, wait.Left())
			b := join(t, store, "b", cert, at("127.0.0.1:0", c.trusted))
			mustStart(t, b.S3Elector)
			b.reads(t, 4) // the first one may have been in flight
			mustStop(t, a.S3Elector)
			mustLead(t, b.S3Elector, wait.Left())
		})
	}
}

func TestHealthServerServesTheLockfile(t *testing.T) {
	t.Parallel()
	cert, ca := certified(t)
	a := join(t, resignedStore(), "a", cert, func(o *s3lect.S3ElectorOptions) { o.Config.PeerHealthPath = "leader" })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: wait.Left()}
	defer client.CloseIdleConnections()
	get := func() (int, string) {
		res, err := client.Get("https://" + a.server.Addr().String() + "/leader")
		must(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		must(t, err)
		return res.StatusCode, string(body)
	}
	if code, body := get(); code != http.StatusNotFound {
		t.Errorf("before it leads: %d %s", code, body)
	}
	mustStart(t, a.S3Elector)
	mustLead(t, a.S3Elector, wait.Left())
	if code, body := get(); code != http.StatusOK || !strings.Contains(body, `"leaderID":"a#`) {
		t.Errorf("while it leads: %d %s", code, body)
	}
	if err := a.server.Start(t.Context()); err == nil {
		t.Error("started twice")
	}
}

// TestElectorOnAServerThatIgnoresConditions: the elector makes its store from the environment. The
// store only writes its probe, and the elector does not lead.
func TestElectorOnAServerThatIgnoresConditions(t *testing.T) {
	puts := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<Error><Code>NoSuchKey</Code></Error>"))
			return
		}
		w.Header().Set("ETag", `"49f68a5c8493ec2c0bf489821c21fc3b"`)
		puts <- r.URL.Path
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
	} {
		t.Setenv(name, value)
	}
	opts := options(nil, "a")
	opts.Storage, opts.Configure, opts.Config.LockfilePath = nil, nil, "s3://bucket/leader/my-group.json"
	e := mustElector(t, opts)
	mustStart(t, e)
	for range 4 { // more than one try
		select {
		case path := <-puts:
			if path != "/bucket/leader/.tenure-probe-conditions" {
				t.Fatalf("%s is written", path)
			}
		case <-wait.Context(t).Done():
			t.Fatal("it tries no longer")
		}
	}
	if e.IsLeader() {
		t.Error("it leads")
	}
}

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
