package clientprops_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/clientprops"
	"github.com/twmb/franz-go/pkg/kgo"
)

// replaced is a source of properties that a test replaces, and a client that follows it.
type replaced struct {
	*kgo.Client
	now     properties
	fault   error
	reports []string
}

func follow(t *testing.T, first properties, more ...kgo.Opt) *replaced {
	t.Helper()
	r := &replaced{now: first}
	opts, err := clientprops.Live(func() (map[string]string, error) { return maps.Clone(r.now), r.fault },
		func(err error) { r.reports = append(r.reports, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	if r.Client, err = kgo.NewClient(append(opts, more...)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestReplacedLogin(t *testing.T) {
	for mechanism, prefix := range map[string]string{"PLAIN": "\x00", "SCRAM-SHA-256": "n,,n=", "SCRAM-SHA-512": "n,,n="} {
		base := properties{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.username": "u", "sasl.password": "p"}
		r := follow(t, base)
		for _, step := range []struct {
			why     string
			now     properties
			fault   error
			user    string
			reports int
		}{
			{"the first", base, nil, "u", 0},
			{"another user", with(base, "sasl.username", "v"), nil, "v", 0},
			{"no password", with(base, "sasl.username", "w", "sasl.password", ""), nil, "v", 1},
			{"another mechanism", with(base, "sasl.username", "w", "sasl.mechanism", "no"), nil, "v", 2},
			{"another protocol", with(base, "sasl.username", "w", "security.protocol", "SASL_SSL"), nil, "v", 3},
			{"gone", base, errors.New("no such file"), "v", 4},
			{"other brokers", with(base, "sasl.username", "w", "bootstrap.servers", "elsewhere:1"), nil, "w", 4},
		} {
			r.now, r.fault = step.now, step.fault
			name, first := says(t, r.Client)
			if name != mechanism || !strings.HasPrefix(first, prefix+step.user) || len(r.reports) != step.reports {
				t.Errorf("%s, %s: it says %q with the reports %q", mechanism, step.why, first, r.reports)
			}
		}
	}
}

func TestReplacedCertificates(t *testing.T) {
	one, two := newIdentity(t, "localhost"), newIdentity(t, "localhost")
	trusted, own := file(t, one.cert), file(t, one.key+one.cert)
	r := follow(t, properties{"security.protocol": "SSL", "ssl.truststore.location": trusted, "ssl.keystore.location": own})
	put := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	accepted := func(i identity) error {
		pair, err := tls.X509KeyPair([]byte(i.cert), []byte(i.key))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(i.cert))
		_, near, far := shakeFrom(t, r.Client, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
		return errors.Join(near, far)
	}
	if err := accepted(one); err != nil {
		t.Error(err)
	}
	put(trusted, two.cert)
	put(own, two.key[:40])
	if err := accepted(one); err != nil || len(r.reports) != 1 {
		t.Errorf("half-written: %v, with the reports %q", err, r.reports)
	}
	put(own, two.key+two.cert)
	strict := r.now
	r.now = with(strict, "ssl.endpoint.identification.algorithm", "none")
	if accepted(two) == nil || len(r.reports) != 2 {
		t.Errorf("the check of hosts is turned off, with the reports %q", r.reports)
	}
	r.now = strict
	if err := accepted(two); err != nil {
		t.Error(err)
	}
	if accepted(one) == nil {
		t.Error("the old authority is still trusted")
	}
}

// TestDialTimeout: the limit of the client bounds the handshake with a silent broker.
func TestDialTimeout(t *testing.T) {
	r := follow(t, properties{"security.protocol": "SSL"}, kgo.DialTimeout(time.Millisecond))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var late net.Error
	if _, err := dialerOf(r.Client)(t.Context(), "tcp", silent.Addr().String()); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("got %v", err)
	}
}
