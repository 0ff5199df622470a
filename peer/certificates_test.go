package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver/memory"
)

// renewed are the files of a member, and its configuration that follows them.
type renewed struct{ ca, cert, key string }

func (r renewed) configure(c *Config) {
	c.TLS = func() (server, client *tls.Config, err error) { return LoadTLS(r.ca, r.cert, r.key) }
}

// become replaces the files by those of another authority.
func (r renewed) become(t *testing.T, a *authority) {
	t.Helper()
	cert, key := a.member("renewed", nil)
	for from, to := range map[string]string{a.file: r.ca, cert: r.cert, key: r.key} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// member returns the files of a new member.
func newRenewed(t *testing.T, a *authority) renewed {
	r := renewed{t.TempDir() + "/ca", t.TempDir() + "/cert", t.TempDir() + "/key"}
	r.become(t, a)
	return r
}

// renewedCertificates renews the certificates and the authorities of a leader, or of its follower,
// while they refuse each other. The leader is at an IP address, which certificates name in another
// way than a host. A handshake that fails needs sockets: over pipes, which do not buffer, both
// sides write until the time limit hides the cause.
func renewedCertificates(t *testing.T, on wires) {
	for _, late := range []string{"leader", "follower"} {
		old, next := newAuthority(t), newAuthority(t)
		files := map[string]renewed{"leader": newRenewed(t, next), "follower": newRenewed(t, next)}
		files[late].become(t, old)
		p := newPair(t, on, files["leader"].configure, files["follower"].configure)
		p.said.until(t, "unknown authority")
		files[late].become(t, next)
		p.received.await(t, p.version)
	}
}

// misnamedLeaderIsRefused checks that Config.TLS does not weaken the check of the leader's host.
func misnamedLeaderIsRefused(t *testing.T, on wires) {
	ca := newAuthority(t)
	server, _ := ca.tls("misnamed", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere"} })
	p := newPair(t, on, func(c *Config) { c.ServerTLS = server }, newRenewed(t, ca).configure)
	p.said.until(t, "127.0.0.1")
}

func TestUnreadableCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(reports, 10)
		ca := newAuthority(t)
		server, client := ca.tls("member", nil)
		var fault error
		cfg := Config{OnError: said.note, TLS: func() (*tls.Config, *tls.Config, error) { return server, client, fault }}
		certs, err := newCertificates(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"half-written", "gone"} {
			fault = errors.New(text)
			for range 3 {
				c, err := certs.server(&tls.ClientHelloInfo{})
				if err != nil || len(c.Certificates) != 1 {
					t.Errorf("%s: %v, %v", text, c, err)
				}
			}
		}
		server, fault = nil, nil
		if own := certs.client(t.Context(), "10.0.0.1:443"); own.ServerName != "10.0.0.1" || own.RootCAs != client.RootCAs {
			t.Errorf("got %+v", own)
		}
		for _, want := range []string{"half-written", "gone", "TLS is turned"} {
			if err := <-said; !strings.Contains(err.Error(), want) {
				t.Errorf("reported is %v, want %s", err, want)
			}
		}
	})
}

func TestTLSMustLoadAtFirst(t *testing.T) {
	gone := errors.New("gone")
	_, err := New(memory.NewPolled(), Config{Networks: loopback, TLS: func() (*tls.Config, *tls.Config, error) { return nil, nil, gone }})
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	_, client := newAuthority(t).tls("member", nil)
	_, err = New(memory.NewPolled(), Config{Networks: loopback, ClientTLS: client, TLS: func() (*tls.Config, *tls.Config, error) { return nil, client, nil }})
	if err == nil || !strings.Contains(err.Error(), "TLS is set besides") {
		t.Errorf("got %v", err)
	}
}

// TestRefusedConnectionsAreReportedLessOften: the port of the other end changes each time.
func TestRefusedConnectionsAreReportedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []time.Duration
		begun := time.Now()
		cfg := Config{Retry: time.Second, OnError: func(string, error) { reports = append(reports, time.Since(begun)) }}
		c := &serverLog{cfg: &cfg, begun: begun}
		for i := range 22 {
			line := "http: TLS handshake error from 127.0.0.1:" + strings.Repeat("1", 1+i%5) + ": tls: expired certificate\n"
			if _, err := c.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		if len(reports) != 4 {
			t.Errorf("in 110 s there are reports at %v, want 4", reports)
		}
		_, _ = c.Write([]byte("http: TLS handshake error from 127.0.0.1:1: EOF\n"))
		if len(reports) != 5 {
			t.Errorf("another cause is not reported: %v", reports)
		}
	})
}
