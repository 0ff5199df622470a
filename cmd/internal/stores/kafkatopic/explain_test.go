package kafkatopic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestExplainKafka has errors as real brokers cause them.
func TestExplainKafka(t *testing.T) {
	denied := func(e error) error {
		return fmt.Errorf("kafkalog: open topic t: %w (%w)", driver.ErrDenied, e)
	}
	for _, c := range []struct {
		err          error
		text, remedy string
	}{
		{
			denied(fmt.Errorf("%w: Authentication failed: Invalid username or password", kerr.SaslAuthenticationFailed)),
			"the brokers refuse this user: SASL_AUTHENTICATION_FAILED: SASL Authentication failed.: Authentication failed: Invalid username or password",
			"check the user, the password",
		},
		{denied(kerr.UnsupportedSaslMechanism), "do not support this sasl.mechanism: UNSUPPORTED_SASL_MECHANISM", "sasl.enabled.mechanisms"},
		{denied(kerr.IllegalSaslState), "the listener has no SASL", "a listener with SASL"},
		{denied(kerr.TopicAuthorizationFailed), "TOPIC_AUTHORIZATION_FAILED", "kafka-acls.sh"},
		{kerr.InvalidReplicationFactor, "INVALID_REPLICATION_FACTOR", "replicas=N"},
		{fmt.Errorf("x: %w", &kgo.ErrFirstReadEOF{}), "another security.protocol than SASL_SSL", "a listener with TLS"},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}, "x509: certificate is not valid for any names", "by the names in their certificates"},
		{tls.RecordHeaderError{Msg: "no"}, "the listener has no TLS", "SASL_PLAINTEXT"},
		{tls.AlertError(116), "refuse the TLS connection", "ssl.keystore.location"},
		{errors.New("invalid large response size 1397966893 > limit 104857600"), "the server at h:9092 is not a Kafka broker", "ports"},
		{errors.New("invalid large response size 352518400 ... a plaintext connection speaking to a tls endpoint?"), "the listener needs TLS", "port of a listener"},
		{errors.New("invalid large response size ... is your broker port correct?"), "the server at h:9092 is not a Kafka broker", "ports"},
		{io.EOF, "close the connection without an answer", "security.protocol"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, "no broker answers at h:9092", ""},
		{context.DeadlineExceeded, "no broker answers at h:9092 in time", "the listener has TLS"},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, "no broker answers at h:9092: dial", "brokers run"},
		{&net.DNSError{Err: "no such host", Name: "h"}, "no broker answers at h:9092: lookup", "check the hosts"},
		{kerr.LeaderNotAvailable, "LEADER_NOT_AVAILABLE", ""},
		{errors.New("else"), "else", ""},
	} {
		var answer *kerr.Error
		waits := strings.HasPrefix(c.text, "no broker answers") && !strings.Contains(c.err.Error(), "tls") ||
			errors.As(c.err, &answer) && answer == kerr.LeaderNotAvailable
		k := &Place{Brokers: []string{"h"}, User: "u", Password: "p", Topic: "t", Properties: map[string]string{"security.protocol": "SSL"}}
		f := k.Explain(c.err)
		if !strings.Contains(f.Error(), c.text) || strings.HasSuffix(f.Error(), "password)") || !strings.Contains(f.Hint, c.remedy) {
			t.Errorf("%v: got %q, hint %q", c.err, f.Error(), f.Hint)
		}
		if f.Passing != waits {
			t.Errorf("%v: waiting helps: %v", c.err, f.Passing)
		}
	}
}

func TestExplainGroup(t *testing.T) {
	k := &Place{Brokers: []string{"h"}, Topic: "t", NELI: &NELI{}}
	for _, c := range []struct {
		err          error
		text, remedy string
	}{
		{fmt.Errorf("%w (%w)", driver.ErrDenied, kerr.GroupAuthorizationFailed), "GROUP_AUTHORIZATION_FAILED", "kafka-acls.sh"},
		{kerr.InvalidSessionTimeout, "INVALID_SESSION_TIMEOUT", "session=15s"},
		{kerr.SaslAuthenticationFailed, "refuse this user", "password"},
		{errors.New("else"), "else", ""},
	} {
		if f := k.explainGroup("g", "g.neli", c.err); !strings.Contains(f.Error(), c.text) || !strings.Contains(f.Hint, c.remedy) {
			t.Errorf("%v: got %q, hint %q", c.err, f.Error(), f.Hint)
		}
	}
}

func TestParseEmbeddedKafka(t *testing.T) {
	k, err := ParseEmbedded("kafka-embedded:?mode=neli&group=g", "topic")
	if err != nil || k.Topic != "topic" || k.NELI.Group != "g" {
		t.Errorf("got %v, %v", k, err)
	}
	for raw, want := range map[string]string{
		"kafka-embedded://host/t": "inside tenure-demo", "kafka-embedded:x": "inside tenure-demo", "kafka-embedded:?group=g": "needs mode=neli",
	} {
		if _, err := ParseEmbedded(raw, "topic"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}
