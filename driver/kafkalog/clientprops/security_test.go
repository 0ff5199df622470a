package clientprops_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/clientprops"
	"github.com/twmb/franz-go/pkg/kgo"
)

// identity is a self-signed certificate, which is also its own authority, in PEM.
type identity struct{ cert, key string }

func newIdentity(t *testing.T, host string) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return identity{block("CERTIFICATE", der), block("PRIVATE KEY", private)}
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.pem")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// oneLine returns PEM as in a properties file whose lines end in backslashes.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "") }

// shake returns the results of both ends of the connection.
func shake(t *testing.T, p properties, server *tls.Config) (state tls.ConnectionState, near, far error) {
	t.Helper()
	return shakeFrom(t, client(t, p), server)
}

func dialerOf(c *kgo.Client) func(ctx context.Context, network, address string) (net.Conn, error) {
	return c.OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error))
}

// shakeFrom is shake for one more connection of a client.
func shakeFrom(t *testing.T, from *kgo.Client, server *tls.Config) (state tls.ConnectionState, near, far error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			err = c.(*tls.Conn).Handshake()
			_ = c.Close()
		}
		done <- err
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c, near := dialerOf(from)(t.Context(), "tcp", "localhost:"+port)
	if near == nil {
		defer c.Close()
		state = c.(*tls.Conn).ConnectionState()
	}
	return state, near, <-done
}

func TestServersAreVerifiedByAuthorityAndHost(t *testing.T) {
	right, other, elsewhere := newIdentity(t, "localhost"), newIdentity(t, "localhost"), newIdentity(t, "kafka-2")
	for _, c := range []struct {
		why    string
		p      properties
		server identity
		want   bool
	}{
		{"in a file", properties{"ssl.truststore.type": "PEM", "ssl.truststore.location": file(t, right.cert)}, right, true},
		{"in a file, by the other name", properties{"ssl.ca.location": file(t, right.cert)}, right, true},
		{"in the property", properties{"ssl.truststore.certificates": right.cert}, right, true},
		{"in one line", properties{"ssl.truststore.certificates": oneLine(other.cert + right.cert)}, right, true},
		{"another authority", properties{"ssl.truststore.certificates": other.cert}, right, false},
		{"the system's authorities", properties{}, right, false},
		{"another host", properties{"ssl.truststore.certificates": elsewhere.cert}, elsewhere, false},
		{"any host", properties{"ssl.truststore.certificates": elsewhere.cert, "ssl.endpoint.identification.algorithm": ""}, elsewhere, true},
		{"any host, by the other name", properties{"ssl.ca.pem": elsewhere.cert, "ssl.endpoint.identification.algorithm": "none"}, elsewhere, true},
		{"any host, but another authority", properties{"ssl.ca.pem": other.cert, "ssl.endpoint.identification.algorithm": ""}, right, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			c.p["security.protocol"] = "SSL"
			pair, err := tls.X509KeyPair([]byte(c.server.cert), []byte(c.server.key))
			if err != nil {
				t.Fatal(err)
			}
			if _, err, _ := shake(t, c.p, &tls.Config{Certificates: []tls.Certificate{pair}}); (err == nil) != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestClientsPresentTheirCertificate(t *testing.T) {
	server, own := newIdentity(t, "localhost"), newIdentity(t, "billing")
	for why, p := range map[string]properties{
		"one file":      {"ssl.keystore.type": "PEM", "ssl.keystore.location": file(t, own.key+own.cert)},
		"two files":     {"ssl.certificate.location": file(t, own.cert), "ssl.key.location": file(t, own.key)},
		"properties":    {"ssl.keystore.certificate.chain": oneLine(own.cert), "ssl.keystore.key": oneLine(own.key)},
		"a file and no": {"ssl.certificate.pem": own.cert, "ssl.key.location": file(t, own.key)},
		"none":          {},
	} {
		t.Run(why, func(t *testing.T) {
			p["security.protocol"], p["ssl.truststore.certificates"] = "SSL", server.cert
			pair, err := tls.X509KeyPair([]byte(server.cert), []byte(server.key))
			if err != nil {
				t.Fatal(err)
			}
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM([]byte(own.cert))
			strict := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
			if _, _, err := shake(t, p, strict); (err == nil) != (why != "none") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestVersionsOfTLS(t *testing.T) {
	server := newIdentity(t, "localhost")
	pair, err := tls.X509KeyPair([]byte(server.cert), []byte(server.key))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, value string
		most, want  uint16
	}{
		{"ssl.protocol", "TLSv1.3", 0, tls.VersionTLS13},
		{"ssl.protocol", "TLSv1.2", 0, tls.VersionTLS12},
		{"ssl.enabled.protocols", "TLSv1.2", 0, tls.VersionTLS12},
		{"ssl.enabled.protocols", "TLSv1.2,TLSv1.3", 0, tls.VersionTLS13},
		{"ssl.enabled.protocols", "TLSv1.3", tls.VersionTLS12, 0},
		{"client.id", "x", tls.VersionTLS11, 0},
	} {
		p := properties{"security.protocol": "SSL", "ssl.truststore.certificates": server.cert, c.name: c.value}
		far := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS10, MaxVersion: c.most}
		state, err, _ := shake(t, p, far)
		if (err == nil) != (c.want != 0) || state.Version != c.want && c.want != 0 {
			t.Errorf("%s=%s: version %x, %v", c.name, c.value, state.Version, err)
		}
	}
}

func TestEncryptedKeysAreRefused(t *testing.T) {
	own := newIdentity(t, "billing")
	key := strings.ReplaceAll(own.key, "PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
	_, err := clientprops.Options(properties{"security.protocol": "SSL", "ssl.keystore.location": file(t, key+own.cert)})
	var p *clientprops.Problem
	if !errors.As(err, &p) || p.Fault != "is encrypted, which is not supported" || !strings.Contains(p.Remedy, "openssl pkcs8") {
		t.Errorf("got %v", err)
	}
}
