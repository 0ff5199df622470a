package kafkatopic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const kafkaRights = "grant it with kafka-acls.sh, or give other credentials; docs/kafka.md lists all rights that a candidate needs"

// Explain returns the error and the hint for a topic that cannot be used.
func (k *Place) Explain(err error) *fault.Error {
	if f := k.explainConnection(err); f != nil {
		return f
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fault.New(kind.MadeBy(k.recipe()), "there is no topic %s", k.Topic)
	case errors.Is(err, kafkalog.ErrMayNotCreate):
		return fault.New("grant Create on it, or ask an operator to make it with: "+k.recipe(),
			"there is no topic %s, and the user may not create it", k.Topic)
	case errors.Is(err, driver.ErrDenied):
		return fault.New(kafkaRights, "%w", err)
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return fault.New("put replicas=N into the URL, with as many as there are brokers or fewer", "%w", err)
	}
	f := fault.New("", "%w", err)
	f.Passing = kerr.IsRetriable(err)
	return f
}

// explainGroup returns the error and the hint for a group that cannot be joined.
func (k *Place) explainGroup(name, topic string, err error) *fault.Error {
	if f := k.explainConnection(err); f != nil {
		return f
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fault.New("add --create, name one that is there with group-topic=, or make it with: kafka-topics.sh "+k.at()+
			" --create --topic "+topic+" --partitions 1", "there is no topic %s for group %s", topic, name)
	case errors.Is(err, driver.ErrDenied):
		return fault.New(kafkaRights, "%w", err)
	case errors.Is(err, kerr.InvalidSessionTimeout):
		return fault.New("put session=15s into the URL, or another time that the brokers allow", "%w", err)
	}
	return fault.New("", "%w", err)
}

// explainConnection returns nil for errors that concern neither the connection nor the login.
func (k *Place) explainConnection(err error) *fault.Error {
	var mechanism *kerr.Error
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fault.New("check the user, the password and sasl.mechanism; "+elsewhere, "the brokers refuse this user: %w", rootSASL(err))
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return fault.New("set sasl.mechanism to one of sasl.enabled.mechanisms of the brokers: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; "+elsewhere,
			"the brokers do not support this sasl.mechanism: %w", kerr.UnsupportedSaslMechanism)
	case errors.Is(err, kerr.IllegalSaslState):
		return fault.New("give the port of a listener with SASL, or no user and no password", "the listener has no SASL: %w", kerr.IllegalSaslState)
	case errors.As(err, &mechanism):
		return nil
	}
	return k.explainTLS(err)
}

// explainTLS tells apart the possible causes of a connection that ends at once.
func (k *Place) explainTLS(err error) *fault.Error {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		first     *kgo.ErrFirstReadEOF
	)
	at := strings.Join(k.brokers(), ",")
	switch {
	case errors.As(err, &authority):
		return fault.New("name its authority with ssl.truststore.location (PEM) in the client properties; "+elsewhere,
			"the brokers have certificates of an unknown authority")
	case errors.As(err, &host):
		return fault.New("give the brokers by the names in their certificates, or empty ssl.endpoint.identification.algorithm", "%w", host)
	case errors.As(err, &record):
		return fault.New("give security.protocol PLAINTEXT or SASL_PLAINTEXT, or the port of a listener with TLS", "the listener has no TLS")
	case errors.As(err, &alert):
		return fault.New("brokers with ssl.client.auth=required need ssl.keystore.location, a key and a certificate in PEM",
			"the brokers refuse the TLS connection: %w", alert)
	case strings.Contains(err.Error(), "tls endpoint"):
		return fault.New(k.protocolHint(), "the listener needs TLS, but security.protocol is %s", k.protocol())
	case strings.Contains(err.Error(), "large response size"): // the beginning of other protocols
		return fault.New("check the hosts and ports in the URL", "the server at %s is not a Kafka broker", at)
	case errors.As(err, &first):
		return fault.New(k.protocolHint(), "the brokers close the connection at once: the listener probably needs another security.protocol than %s", k.protocol())
	}
	if errors.Is(err, io.EOF) {
		return fault.New("check security.protocol, and the user and the password if there are any; "+elsewhere,
			"the brokers close the connection without an answer")
	}
	return k.unreachable(at, err)
}

// protocol returns the security protocol that is set.
func (k *Place) protocol() string {
	p := map[string]string{"security.protocol": k.Properties["security.protocol"]}
	if k.User != "" {
		logIn(p, k.User, k.Password)
	}
	if p["security.protocol"] == "" {
		return "PLAINTEXT"
	}
	return p["security.protocol"]
}

func (k *Place) protocolHint() string {
	if strings.HasSuffix(k.protocol(), "SSL") {
		return "give the port of a listener with TLS, or set security.protocol to PLAINTEXT or SASL_PLAINTEXT"
	}
	return "set security.protocol to that of the listener: SASL_PLAINTEXT needs a user and a password, SSL and SASL_SSL are encrypted; " + elsewhere
}

// unreachable explains that no broker answers. It returns nil for other errors.
func (k *Place) unreachable(at string, err error) *fault.Error {
	var (
		name   *net.DNSError
		op     *net.OpError
		silent *silentError
	)
	switch {
	case errors.As(err, &silent):
		return fault.Passing("check that the port is one of Kafka's listeners, and that the broker does not hang"+k.encrypted(),
			"%s accepts connections but does not answer as a broker in time", silent.at)
	case errors.As(err, &name):
		return fault.Passing("check the hosts in the URL", "no broker answers at %s: %w", at, name)
	case errors.As(err, &op):
		f := fault.New("check the hosts and ports in the URL, and that the brokers run"+k.encrypted(), "no broker answers at %s: %w", at, op)
		f.Passing = kind.Away(op)
		return f
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, kgo.ErrClientClosed):
		return fault.Passing("check the hosts and ports in the URL, and that no firewall is in between"+k.encrypted(), "no broker answers at %s in time", at)
	}
	return nil
}

// encrypted adds to a hint if the client uses TLS: a listener without TLS may hang up, or not
// answer.
func (k *Place) encrypted() string {
	if strings.HasSuffix(k.protocol(), "SSL") {
		return ", and that the listener has TLS"
	}
	return ""
}

// rootSASL returns the broker's own message, without the text that other layers put around it.
func rootSASL(err error) error {
	if _, own, ok := strings.Cut(err.Error(), kerr.SaslAuthenticationFailed.Message); ok {
		return errors.New(kerr.SaslAuthenticationFailed.Message + strings.TrimRight(own, ")"))
	}
	return kerr.SaslAuthenticationFailed
}

// recipe returns the command that makes the topic as the driver would.
func (k *Place) recipe() string { return kafkalog.CreateCommand(k.Topic, k.at()) }
