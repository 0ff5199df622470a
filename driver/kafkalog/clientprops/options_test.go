package clientprops_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/clientprops"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

type properties = map[string]string

// client returns a client with these properties. It connects only when it is used.
func client(t *testing.T, p properties) *kgo.Client {
	t.Helper()
	opts, err := clientprops.Options(p)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestConnection(t *testing.T) {
	c := client(t, properties{
		"bootstrap.servers": "kafka-1:9092, kafka-2,[::1]:9093,", "client.id": "billing",
		"connections.max.idle.ms": "30000", "metadata.max.age.ms": "60000",
	})
	if got := c.OptValue(kgo.SeedBrokers).([]string); !slices.Equal(got, []string{"kafka-1:9092", "kafka-2", "[::1]:9093"}) {
		t.Errorf("brokers %v", got)
	}
	for name, c := range map[string]struct{ got, want any }{
		"client.id": {c.OptValue(kgo.ClientID), "billing"},
		"idle":      {c.OptValue(kgo.ConnIdleTimeout), 30 * time.Second},
		"metadata":  {c.OptValue(kgo.MetadataMaxAge), time.Minute},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", name, c.got, c.want)
		}
	}
	if opts, err := clientprops.Options(nil); err != nil || len(opts) > 0 {
		t.Errorf("no properties make %d options, %v", len(opts), err)
	}
}

func TestBrokersByAlternativeName(t *testing.T) {
	c := client(t, properties{"metadata.broker.list": "h:1"})
	if got := c.OptValue(kgo.SeedBrokers).([]string); !slices.Equal(got, []string{"h:1"}) {
		t.Errorf("brokers %v", got)
	}
}

// The client's first message shows the user that it logs in as.
func TestLogin(t *testing.T) {
	const plainModule = "org.apache.kafka.common.security.plain.PlainLoginModule"
	const scramModule = "org.apache.kafka.common.security.scram.ScramLoginModule"
	for _, c := range []struct {
		why             string
		mechanism, jaas string
		first           string
	}{
		{"plain", "PLAIN", plainModule + ` required username="alice" password="s3cret";`, "\x00alice\x00s3cret"},
		{"over lines", "PLAIN", plainModule + " required\n  username=alice\n\tpassword='s3 cret' ;", "\x00alice\x00s3 cret"},
		{"escaped", "PLAIN", plainModule + ` Required username="al\"ice" password="a\\b;=c";`, "\x00al\"ice\x00a\\b;=c"},
		{"an option that is empty", "PLAIN", plainModule + ` required username="a" password=";";`, "\x00a\x00;"},
		{"another package", "plain", `example.PlainLoginModule required username="a" password="b";`, "\x00a\x00b"},
		{"256", "SCRAM-SHA-256", scramModule + ` required username="alice" password="s3cret";`, "n,,n=alice,r="},
		{"512", "SCRAM-SHA-512", scramModule + ` required username="alice" password="s3cret";`, "n,,n=alice,r="},
		{"a token", "SCRAM-SHA-512", scramModule + ` required username="id" password="hmac" tokenauth="true";`, "n,,n=id,r="},
	} {
		t.Run(c.why, func(t *testing.T) {
			p := properties{"security.protocol": "SASL_SSL", "sasl.mechanism": c.mechanism, "sasl.jaas.config": c.jaas}
			name, first := says(t, client(t, p))
			if name != strings.ToUpper(c.mechanism) || !strings.HasPrefix(first, c.first) {
				t.Errorf("by %s it says %q", name, first)
			}
			if strings.Contains(first, "tokenauth=true") != (c.why == "a token") {
				t.Errorf("it says %q", first)
			}
		})
	}
}

func says(t *testing.T, c *kgo.Client) (mechanism, first string) {
	t.Helper()
	all := c.OptValue(kgo.SASL).([]sasl.Mechanism)
	if len(all) != 1 {
		t.Fatalf("%d mechanisms", len(all))
	}
	_, text, err := all[0].Authenticate(context.Background(), "h")
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Name(), string(text)
}

func TestLoginByAlternativeNames(t *testing.T) {
	c := client(t, properties{
		"security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN", "sasl.username": "alice", "sasl.password": "s3cret",
	})
	if _, first := says(t, c); first != "\x00alice\x00s3cret" {
		t.Errorf("it says %q", first)
	}
}

// with returns properties with some changed. An empty value removes a property.
func with(base properties, changes ...string) properties {
	p := properties{}
	for name, value := range base {
		p[name] = value
	}
	for i := 0; i < len(changes); i += 2 {
		if p[changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(p, changes[i])
		}
	}
	return p
}

func TestErrorsHaveARemedyAndNoSecrets(t *testing.T) {
	login := properties{
		"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
		"sasl.jaas.config": `x.PlainLoginModule required username="u" password="s3cret";`,
	}
	jaas := func(text string) properties { return with(login, "sasl.jaas.config", text) }
	ssl := properties{"security.protocol": "SSL"}
	for _, c := range []struct {
		p                   properties
		name, fault, remedy string
	}{
		{properties{"bootstrap.server": "h"}, "bootstrap.server", "not known", "leave it out"},
		{properties{"": "x"}, "", "without a name", "leave it out"},
		{properties{"acks": "1"}, "acks", "decided by the election", "leave it out"},
		{properties{"bootstrap.servers": "h:0"}, "bootstrap.servers", "not host:port", "kafka-1:9092"},
		{properties{"bootstrap.servers": "h:65536"}, "bootstrap.servers", "not host:port", "kafka-1:9092"},
		{properties{"bootstrap.servers": "PLAINTEXT://h:1"}, "bootstrap.servers", "not host:port", "kafka-1:9092"},
		{properties{"bootstrap.servers": " , "}, "bootstrap.servers", "no broker", "kafka-1:9092"},
		{properties{"metadata.broker.list": "h:x"}, "metadata.broker.list", "not host:port", "kafka-1:9092"},
		{properties{"metadata.broker.list": "h", "bootstrap.servers": "h"}, "metadata.broker.list", "besides bootstrap.servers", "leave out one"},
		{properties{"metadata.max.age.ms": "5m"}, "metadata.max.age.ms", "milliseconds", "number"},
		{properties{"connections.max.idle.ms": "999"}, "connections.max.idle.ms", "at least 1000", "number"},
		{properties{"security.protocol": "TLS"}, "security.protocol", "is unknown", "SASL_SSL"},
		{with(login, "security.protocol", "SSL", "sasl.jaas.config", ""), "sasl.mechanism", "no effect", "give that"},
		{with(login, "sasl.mechanism", "GSSAPI"), "sasl.mechanism", "not supported", "SCRAM-SHA-512"},
		{with(login, "sasl.mechanism", "OAUTHBEARER"), "sasl.mechanism", "not supported", "SCRAM-SHA-512"},
		{with(login, "sasl.mechanism", ""), "sasl.mechanism", "is not given", "SCRAM-SHA-512"},
		{with(login, "sasl.jaas.config", ""), "sasl.jaas.config", "is not given", "PlainLoginModule required"},
		{with(login, "sasl.mechanism", "SCRAM-SHA-256"), "sasl.jaas.config", "another login module", "ScramLoginModule required"},
		{with(login, "sasl.password", "s3cret"), "sasl.password", "besides sasl.jaas.config", "leave out one"},
		{with(login, "sasl.jaas.config", "", "sasl.password", "s3cret"), "sasl.username", "is empty", "name"},
		{with(login, "sasl.jaas.config", "", "sasl.username", "u"), "sasl.password", "is empty", "password"},
		{with(login, "sasl.kerberos.service.name", "kafka"), "sasl.kerberos.service.name", "not supported", "SCRAM-SHA-512"},
		{jaas(`x.PlainLoginModule required username="u" password="s3cret"`), "sasl.jaas.config", "one semicolon", "PlainLoginModule"},
		{jaas(`x.PlainLoginModule optional username="u" password="s3cret";`), "sasl.jaas.config", "required", "PlainLoginModule"},
		{jaas(`x.PlainLoginModule required username="u password=s3cret;`), "sasl.jaas.config", "quote that does not end", "PlainLoginModule"},
		{jaas(`x.PlainLoginModule required username="u" s3cret password=;`), "sasl.jaas.config", "cannot be read", "PlainLoginModule"},
		{jaas(`x.PlainLoginModule required username="u" password=s3cret; y.Other required;`), "sasl.jaas.config", "cannot be read", "PlainLoginModule"},
		{jaas(`x.PlainLoginModule required password="s3cret";`), "sasl.jaas.config", "lacks username", "PlainLoginModule"},
		{jaas(`x.PlainLoginModule required username="u" password="s3cret" user_u="s3cret";`), "sasl.jaas.config", "has options besides", "PlainLoginModule"},
		{jaas(`;`), "sasl.jaas.config", "cannot be read", "PlainLoginModule"},
		{properties{"ssl.truststore.type": "PEM"}, "ssl.truststore.type", "no effect without security.protocol SSL", "give that"},
		{with(ssl, "ssl.truststore.type", "JKS"), "ssl.truststore.type", "is not PEM", "keytool"},
		{with(ssl, "ssl.truststore.location", "missing.pem"), "ssl.truststore.location", "cannot be read", "file"},
		{with(ssl, "ssl.ca.location", "options_test.go"), "ssl.ca.location", "is not PEM", "keytool"},
		{with(ssl, "ssl.truststore.certificates", "s3cret"), "ssl.truststore.certificates", "no certificate in PEM", "keytool"},
		{with(ssl, "ssl.ca.pem", "s3cret", "ssl.ca.location", "x"), "ssl.ca.location", "besides ssl.ca.pem", "leave out one"},
		{with(ssl, "ssl.truststore.password", "s3cret"), "ssl.truststore.password", "not supported", "PEM has none"},
		{with(ssl, "ssl.keystore.type", "PKCS12"), "ssl.keystore.type", "is not PEM", "openssl pkcs12"},
		{with(ssl, "ssl.keystore.location", "options_test.go"), "ssl.keystore.location", "is not PEM", "openssl pkcs12"},
		{with(ssl, "ssl.keystore.key", "s3cret"), "ssl.keystore.key", "without a certificate", "chain"},
		{with(ssl, "ssl.certificate.pem", "x"), "ssl.certificate.pem", "without a key", "ssl.keystore.key"},
		{with(ssl, "ssl.keystore.certificate.chain", "x", "ssl.keystore.key", "s3cret"), "ssl.keystore.key", "belong together", "openssl"},
		{with(ssl, "ssl.keystore.key", "s3cret", "ssl.keystore.location", "x"), "ssl.keystore.location", "besides", "leave out one"},
		{with(ssl, "ssl.key.password", "s3cret"), "ssl.key.password", "not supported", "openssl pkcs8"},
		{with(ssl, "ssl.endpoint.identification.algorithm", "http"), "ssl.endpoint.identification.algorithm", "is unknown", "https"},
		{with(ssl, "ssl.enabled.protocols", "TLSv1.3,TLSv1"), "ssl.enabled.protocols", "not supported", "TLSv1.2"},
		{with(ssl, "ssl.protocol", ""), "", "", ""},
	} {
		_, err := clientprops.Options(c.p)
		if c.fault == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		var p *clientprops.Problem
		if !errors.As(err, &p) {
			t.Errorf("%v: got %v", c.p, err)
			continue
		}
		if p.Name != c.name || !strings.Contains(p.Fault, c.fault) || !strings.Contains(p.Remedy, c.remedy) {
			t.Errorf("%v: got %v", c.p, err)
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("shows a secret: %v", err)
		}
	}
}

func TestAllErrorsAreReportedInOrder(t *testing.T) {
	_, err := clientprops.Options(properties{
		"security.protocol": "SSL", "ssl.truststore.type": "JKS", "acks": "all", "client.id": "x", "sasl.username": "u", "bootstrap.servers": ":1",
	})
	var names []string
	for line := range strings.Lines(err.Error()) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	if want := []string{"acks", "bootstrap.servers", "sasl.username", "ssl.truststore.type"}; !slices.Equal(names, want) {
		t.Errorf("got %v:\n%v", names, err)
	}
}

func TestNamesListsAllSupportedProperties(t *testing.T) {
	names := clientprops.Names()
	if !slices.IsSorted(names) || len(names) != len(slices.Compact(slices.Clone(names))) {
		t.Error("not in order, or doubled")
	}
	for _, name := range names {
		_, err := clientprops.Options(properties{name: "x"})
		if err != nil && strings.Contains(err.Error(), "not known") {
			t.Error(err)
		}
	}
}

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
