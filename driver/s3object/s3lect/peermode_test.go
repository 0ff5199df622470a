package s3lect_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/driver/s3object/s3lect"
)

// certified is a certificate for 127.0.0.1 that is its own authority.
func certified(t *testing.T) (cert tls.Certificate, ca []byte) {
	t.Helper()
	return certifiedFor(t, net.IPv4(127, 0, 0, 1))
}

func certifiedFor(t *testing.T, ip net.IP) (cert tls.Certificate, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "peers"}, IPAddresses: []net.IP{ip},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// member is an elector with a server of its own.
type member struct {
	*s3lect.S3Elector
	storage *counted
	server  *s3lect.HealthServer
}

const quick = 2 * time.Second // the shortest lease there is

func join(t *testing.T, store driver.Store, id string, cert tls.Certificate, change func(*s3lect.S3ElectorOptions)) member {
	t.Helper()
	m := member{storage: &counted{Storage: plain{s3lect.ToStorage(store)}}}
	opts := options(store, id)
	opts.Storage, opts.Configure = m.storage, nil
	opts.Config.LeaderTimeout, opts.Config.FrequentInterval, opts.Config.PeerMode = quick, quick/4, true
	if change != nil {
		change(&opts)
	}
	m.S3Elector = mustElector(t, opts)
	var err error
	m.server, err = s3lect.NewHealthServer(s3lect.HealthServerConfig{
		BindAddress: "127.0.0.1:0", Certificate: cert, Elector: m.S3Elector, Logger: opts.Logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := *m.GetConfig()
	cfg.ServerAddr = m.server.Addr().String()
	if err := m.UpdateConfig(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
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

// quiet waits until the elector reads nothing for a whole lease.
func (m member) quiet(t *testing.T) {
	t.Helper()
	for range 20 {
		before := m.storage.gets.Load()
		time.Sleep(quick)
		if m.storage.gets.Load() == before {
			return
		}
	}
	t.Fatalf("reads go on: %d", m.storage.gets.Load())
}

// reads waits until the elector has read so many times more, as it does when it hears nothing.
func (m member) reads(t *testing.T, n int64) {
	t.Helper()
	want := m.storage.gets.Load() + n
	for end := time.Now().Add(30 * time.Second); m.storage.gets.Load() < want; time.Sleep(quick / 20) {
		if time.Now().After(end) {
			t.Fatalf("%d reads less than %d, though it cannot know the leader", want-m.storage.gets.Load(), n)
		}
	}
}

func TestPeersHearFromTheLeader(t *testing.T) {
	t.Parallel()
	store := memory.NewPolled()
	cert, ca := certified(t)
	peers := func(o *s3lect.S3ElectorOptions) { o.Config.PeerCACert = ca }
	a := join(t, store, "a", cert, peers)
	mustStart(t, a.S3Elector)
	mustLead(t, a.S3Elector, time.Minute)
	b := join(t, store, "b", cert, func(o *s3lect.S3ElectorOptions) { o.Config.PeerMode = false })
	mustStart(t, b.S3Elector)
	if _, err := b.WaitForNextElection(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := b.EnablePeerMode(ca); err != nil {
		t.Fatal(err)
	}
	b.quiet(t)
	began := time.Now()
	mustStop(t, a.S3Elector)
	mustLead(t, b.S3Elector, time.Minute)
	t.Logf("b leads %v after a was told to stop", time.Since(began))
}

// A follower that cannot trust the leader's certificate reads, and takes over all the same.
func TestPeersThatAreNotTrustedAreNotHeard(t *testing.T) {
	t.Parallel()
	cert, ca := certified(t)
	_, other := certified(t)
	elsewhere, caElsewhere := certifiedFor(t, net.IPv4(127, 0, 0, 2))
	cases := []struct {
		name    string
		cert    tls.Certificate
		trusted []byte
	}{
		{"another authority", cert, other},
		{"another host", elsewhere, caElsewhere},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := memory.NewPolled()
			a := join(t, store, "a", c.cert, func(o *s3lect.S3ElectorOptions) { o.Config.PeerCACert = ca })
			mustStart(t, a.S3Elector)
			mustLead(t, a.S3Elector, time.Minute)
			b := join(t, store, "b", cert, func(o *s3lect.S3ElectorOptions) { o.Config.PeerCACert = c.trusted })
			mustStart(t, b.S3Elector)
			b.reads(t, 4) // the first may have been on the way before
			mustStop(t, a.S3Elector)
			mustLead(t, b.S3Elector, time.Minute)
		})
	}
}

func TestHealthServerServesTheLockfile(t *testing.T) {
	t.Parallel()
	cert, ca := certified(t)
	a := join(t, memory.NewPolled(), "a", cert, func(o *s3lect.S3ElectorOptions) { o.Config.PeerHealthPath = "leader" })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	get := func() (int, string) {
		res, err := client.Get("https://" + a.server.Addr().String() + "/leader")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	if code, body := get(); code != http.StatusNotFound {
		t.Errorf("before it leads: %d %s", code, body)
	}
	mustStart(t, a.S3Elector)
	mustLead(t, a.S3Elector, time.Minute)
	if code, body := get(); code != http.StatusOK || !strings.Contains(body, `"leaderID":"a#`) {
		t.Errorf("while it leads: %d %s", code, body)
	}
	if err := a.server.Start(t.Context()); err == nil {
		t.Error("started twice")
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err == nil {
		t.Error("listens on a port that cannot be")
	}
	if err := h.Stop(t.Context()); err != nil || h.Addr() != nil {
		t.Errorf("not started: %v, %v", h.Addr(), err)
	}
}

func TestConfigureHasTheLastWord(t *testing.T) {
	opts := options(memory.NewPolled(), "a")
	opts.Configure = func(c *tenure.Config) { c.Lease = time.Millisecond }
	if _, err := s3lect.NewS3Elector(opts); err == nil {
		t.Error("was not asked")
	}
}
