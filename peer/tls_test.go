package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver/memory"
	certfiles "github.com/tenure-go/tenure/internal/test/certificates"
)

// authority is an authority with its file.
type authority struct {
	*testing.T
	file string
	// member makes the files of one member, valid for the loopback unless changed.
	member func(name string, change ...func(*x509.Certificate)) (certFile, keyFile string)
}

func newAuthority(t *testing.T) *authority {
	ca, sign := certfiles.Renewed(t)
	return &authority{t, ca, func(name string, change ...func(*x509.Certificate)) (string, string) {
		return sign(name, time.Hour, change...)
	}}
}

// tls returns the server and the client settings of a member.
func (a *authority) tls(name string, change ...func(*x509.Certificate)) (server, client *tls.Config) {
	a.Helper()
	certFile, keyFile := a.member(name, change...)
	server, client, err := LoadTLS(a.file, certFile, keyFile)
	if err != nil {
		a.Fatal(err)
	}
	return server, client
}

// elsewhere names another host in a certificate.
func elsewhere(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere"} }

func followOverTLS(t *testing.T, on wires) {
	ca := newAuthority(t)
	server, _ := ca.tls("leader")
	_, client := ca.tls("follower")
	p := newPair(t, on, func(c *Config) { c.ServerTLS = server }, func(c *Config) { c.ClientTLS = client })
	p.received.await(t, p.version)
	p.received.await(t, p.write(t, held(p.name, 1, 2)))
	// Streams of many keys share a connection.
	l := on.free(t)
	counted := &counted{Listener: l}
	go func() { _ = p.leader.Serve(counted) }()
	for _, key := range []string{"a", "b", "c"} {
		r := held(p.name, 1, 1)
		r.LeaderAddr = l.Addr().String()
		v := write(t, p.leader, key, r)
		received := listenTo(t, p.follower, key)
		_, _ = p.follower.Read(t.Context(), key)
		received.await(t, v)
	}
	if n := counted.n.Load(); n != 1 {
		t.Errorf("%d connections for three keys", n)
	}
	p.received.await(t, p.write(t, released(p.name, 1, 3)))
}

// counted is a listener that counts.
type counted struct {
	net.Listener
	n atomic.Int64
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

func streamOutlivesTheLimitsOfServe(t *testing.T, on wires) { outlivesServe(t, on, nil, nil) }

func secureStreamOutlivesTheLimitsOfServe(t *testing.T, on wires) {
	server, client := newAuthority(t).tls("member")
	outlivesServe(t, on, server, client)
}

// The limits of Serve are meant for requests. A stream outlives them, over either version of HTTP.
func outlivesServe(t *testing.T, on wires, server, client *tls.Config) {
	const limit = 1200 * time.Millisecond
	short := func(c *Config) { c.Timeout, c.ServerTLS, c.ClientTLS = limit, server, client }
	p := newPair(t, on, short, short)
	p.received.await(t, p.version)
	time.Sleep(2 * limit)
	p.received.await(t, p.write(t, held(p.name, 1, 2)))
	if len(p.said) > 0 {
		t.Errorf("the stream broke: %v", <-p.said)
	}
}

// TestWrongCertificate: it is reported and nothing is pushed. Once it is corrected, the follower
// works again.
func TestWrongCertificate(t *testing.T) {
	for n, w := range wrongCertificates(t) {
		t.Run(w.name, func(t *testing.T) {
			overPipes(t, func(t *testing.T, on wires) { wrongCertificates(t)[n].isReported(t, on) })
		})
	}
}

// wrongCertificate is a leader and a follower that cannot trust each other.
type wrongCertificate struct {
	name, report   string
	server, client *tls.Config
}

// wrongCertificates are valid at the present time, which differs in bubbles.
func wrongCertificates(t *testing.T) []wrongCertificate {
	ca, foreign := newAuthority(t), newAuthority(t)
	server, client := ca.tls("member")
	misnamed, _ := ca.tls("misnamed", elsewhere)
	foreignServer, foreignClient := foreign.tls("member")
	_, bare, err := LoadTLS(ca.file, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return []wrongCertificate{
		{"of another authority", "unknown authority", foreignServer, client},
		{"for another host", "127.0.0.1", misnamed, client},
		{"follower without one", "certificate required", server, bare},
		{"follower of another authority", "unknown authority", server, foreignClient},
		{"follower without TLS", "400", server, nil},
		{"leader without TLS", "does not look like a TLS handshake", nil, client},
	}
}

func (w wrongCertificate) isReported(t *testing.T, on wires) {
	complaints := make(reports, 100)
	p := newPair(t, on,
		func(c *Config) { c.ServerTLS, c.OnError = w.server, complaints.note },
		func(c *Config) { c.ClientTLS = w.client })
	p.said.until(t, w.report)
	if w.server != nil {
		complaints.until(t, "TLS")
	}
	if len(p.received.entries) > 0 {
		t.Error("something was pushed")
	}
	if e, err := p.follower.Read(t.Context(), testKey); err != nil || e.Version != p.version {
		t.Errorf("the store is no longer read: %+v, %v", e, err)
	}
}

func TestLoadTLSRefuses(t *testing.T) {
	ca, foreign := newAuthority(t), newAuthority(t)
	cert, key := ca.member("sound")
	_, otherKey := ca.member("other")
	foreignCert, foreignKey := foreign.member("foreign")
	oldCert, oldKey := ca.member("old", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	halfCert, halfKey := ca.member("half", func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] })
	none := filepath.Join(t.TempDir(), "none")
	tests := []struct{ name, ca, cert, key, want string }{
		{"sound", ca.file, cert, key, ""},
		{"missing authority", none, cert, key, "none"},
		{"authority is no certificate", key, cert, key, "no certificate"},
		{"missing certificate", ca.file, none, key, "none"},
		{"certificate alone", ca.file, cert, "", "go together"},
		{"key alone", ca.file, "", key, "go together"},
		{"key of another", ca.file, cert, otherKey, otherKey},
		{"other authority", ca.file, foreignCert, foreignKey, "unknown authority"},
		{"out of its time", ca.file, oldCert, oldKey, "expired"},
		{"for servers alone", ca.file, halfCert, halfKey, "client"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server, client, err := LoadTLS(tt.ca, tt.cert, tt.key)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				return
			}
			if err != nil || server.ClientAuth != tls.RequireAndVerifyClientCert || server.ClientCAs == nil || client.RootCAs == nil {
				t.Errorf("%v", err)
			}
		})
	}
}

// renewed are the files of a member, and its configuration that follows them.
type renewed struct{ ca, cert, key string }

func (r renewed) configure(c *Config) {
	c.TLS = func() (server, client *tls.Config, err error) { return LoadTLS(r.ca, r.cert, r.key) }
}

// become replaces the files by those of another authority.
func (r renewed) become(t *testing.T, a *authority) {
	t.Helper()
	cert, key := a.member("renewed")
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
	server, _ := ca.tls("misnamed", elsewhere)
	p := newPair(t, on, func(c *Config) { c.ServerTLS = server }, newRenewed(t, ca).configure)
	p.said.until(t, "127.0.0.1")
}

func TestUnreadableCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(reports, 10)
		ca := newAuthority(t)
		server, client := ca.tls("member")
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
	_, client := newAuthority(t).tls("member")
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
