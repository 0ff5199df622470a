//go:build integration

package stores_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// enterWith is enter with properties of Kafka's clients.
func enterWith(t *testing.T, url string, properties map[string]string, create bool, want string) (*stores.Store, error) {
	t.Helper()
	place := places.Parse(t, url)
	place.At.(*kafkatopic.Place).Properties = properties
	return places.Enter(t, place, create, want)
}

// right returns a user with only these rights.
func right(user, topic string, rights ...kmsg.ACLOperation) kfake.Opt {
	var all []kfake.ACL
	for _, r := range rights {
		all = append(all, kfake.ACL{
			Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: r, Allow: true,
		})
	}
	return kfake.User("PLAIN", user, "s3cret", all...)
}

func withUsers(t *testing.T) string {
	return servers.Kafka(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "all", "s3cret"),
		right("reader", "there", kmsg.ACLOperationRead, kmsg.ACLOperationDescribe),
		right("maker", "missing", kmsg.ACLOperationDescribe, kmsg.ACLOperationRead, kmsg.ACLOperationWrite),
		right("stranger", "other", kmsg.ACLOperationRead))
}

// greets is a server that writes a greeting to each client, reads the beginning of a request and
// hangs up. Without a greeting it is like a broker without TLS: real brokers take a TLS handshake
// for a request whose size is beyond any limit. kfake would wait for that many bytes.
func greets(t *testing.T, greeting string) string {
	t.Helper()
	return program.Serve(t, func(c net.Conn) {
		_, _ = io.WriteString(c, greeting)
		_, _ = io.ReadFull(c, make([]byte, 4))
		_ = c.Close()
	})
}

// A web server waits for a line, which no Kafka client sends.
func TestSilentServerIsNoBroker(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	t.Cleanup(s.Close)
	at := s.Listener.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := places.Visit(ctx, t, places.Parse(t, "kafka://"+at+"/t"), false)
	places.Says(t, err, at+" accepts connections but does not answer as a broker in time", "one of Kafka's listeners")
	if !fault.Passes(err) {
		t.Error("a broker that hangs is not waited for")
	}
}

// The brokers of this test drop connections where real brokers return an error. A later test has
// the errors of real brokers.
func TestKafkaErrorsHaveARemedy(t *testing.T) {
	t.Parallel()
	hosts, plain := withUsers(t), servers.Kafka(t)
	for _, c := range []struct {
		why, url   string
		properties map[string]string
		create     bool
		err, hint  string
	}{
		{"no broker", "kafka://127.0.0.1:1/t", nil, false, "no broker answers at 127.0.0.1:1: dial tcp", "check the hosts and ports"},
		{"no host", "kafka://nowhere.invalid/t", nil, false, "no broker answers at nowhere.invalid:9092", "check the hosts"},
		{"no users", "kafka://" + hosts + "/t", nil, false, "another security.protocol than PLAINTEXT", "SASL_PLAINTEXT needs a user"},
		{"a wrong password", "kafka://all:wrong@" + hosts + "/t", nil, false, "close the connection without an answer", "TENURE_KAFKA_PASSWORD"},
		{
			"another mechanism", "kafka://all:s3cret@" + hosts + "/t", map[string]string{"sasl.mechanism": "SCRAM-SHA-512"}, false,
			"close the connection without an answer", "the user and the password",
		},
		{"SSH", "kafka://" + greets(t, "SSH-2.0-OpenSSH_9.2\r\n") + "/t", nil, false, " is not a Kafka broker", "check the hosts"},
		{"NATS", "kafka://" + greets(t, "INFO {}\r\n") + "/t", nil, false, " is not a Kafka broker", "check the hosts"},
		{"a listener with TLS", "kafka://" + greets(t, "\x15\x03\x03\x00\x02\x02\x46") + "/t", nil, false, "the listener needs TLS, but security.protocol is PLAINTEXT", "SASL_SSL"},
		{"no TLS", "kafka://" + greets(t, "") + "/t", map[string]string{"security.protocol": "SSL"}, false, "no broker answers", "the listener has TLS"},
		{"no topic", "kafka://" + plain + "/t", nil, false, "there is no topic t", "makes it, and so does: kafka-topics.sh --bootstrap-server 127.0.0.1:"},
		{"no right to make it", "kafka://maker:s3cret@" + hosts + "/missing", nil, true, "there is no topic missing, and the user may not create it", "grant Create"},
		{"no right to see it", "kafka://stranger:s3cret@" + hosts + "/t", nil, true, "TOPIC_AUTHORIZATION_FAILED", "kafka-acls.sh"},
	} {
		// One at a time: refused clients connect again and again.
		t.Run(c.why, func(t *testing.T) {
			_, err := enterWith(t, c.url, c.properties, c.create, c.err)
			places.Says(t, err, c.err, c.hint)
		})
	}
}

func TestOpenRefusesAnUnsafeTopic(t *testing.T) {
	t.Parallel()
	hosts := servers.Kafka(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(hosts, ",")...))
	must.OK(t, err)
	defer client.Close()
	compact := "compact"
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 1, 3
	topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: "cleanup.policy", Value: &compact})
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	if _, err := req.RequestWith(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	_, err = enter(t, "kafka://"+hosts+"/t", true, "")
	places.Says(t, err, "unsafe: cleanup.policy: ", "")
}

// TestOpenOverTLS has encrypted brokers with a known and with an unknown authority.
func TestOpenOverTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS() // to get its certificate
	s.Close()
	hosts := servers.Kafka(t, kfake.TLS(&tls.Config{Certificates: s.TLS.Certificates}))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	must.OK(t, os.WriteFile(ca, text, 0o600))
	if _, err := enterWith(t, "kafka://"+hosts+"/t", map[string]string{"security.protocol": "SSL", "ssl.truststore.location": ca}, true, ""); err != nil {
		t.Error(err)
	}
	_, err := enterWith(t, "kafka://"+hosts+"/t", map[string]string{"security.protocol": "SSL"}, true, "an unknown authority")
	places.Says(t, err, "an unknown authority", "ssl.truststore.location")
	_, err = enter(t, "kafka://"+hosts+"/t", true, "another security.protocol")
	places.Says(t, err, "another security.protocol than PLAINTEXT", "TENURE_KAFKA_SECURITY_PROTOCOL")
}

func TestConnectionLossIsReportedOnce(t *testing.T) {
	t.Parallel()
	news := make(chan error, 100)
	_, err := stores.Open(t.Context(), places.Parse(t, "kafka://"+places.Unreachable+"/t"), stores.Options{OnConnection: func(up bool, err error) {
		if !up {
			news <- err
		}
	}})
	places.Says(t, err, "no broker answers", "")
	if len(news) != 1 || !strings.HasPrefix((<-news).Error(), "broker "+places.Unreachable+": dial tcp") {
		t.Error("the loss of the connection is not reported exactly once")
	}
}

// nominate joins the group of an election with one candidate.
func nominate(t *testing.T, s *stores.Store, election string) *stores.Nomination {
	t.Helper()
	n, err := s.Nominate(t.Context(), election)
	must.OK(t, err)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func TestNomineeLeads(t *testing.T) {
	t.Parallel()
	s, err := enter(t, "kafka://"+servers.Kafka(t)+"/t?mode=neli&session=30s&nominee-only=true", true, "")
	must.OK(t, err)
	n := nominate(t, s, "billing")
	e, err := tenure.New(s.Driver, "billing", tenure.Config{ID: "a", Lease: time.Minute, Nomination: n.Config, Metadata: n.Metadata})
	must.OK(t, err)
	ctx := wait.Context(t)
	term, err := e.Campaign(ctx)
	must.OK(t, err)
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
	if !n.Only || n.Metadata["kafka.group"] != "billing" {
		t.Errorf("got %+v", n)
	}
	if err := n.Check(map[string]string{"kafka.group": "other"}); err == nil || n.Check(n.Metadata) != nil {
		t.Errorf("two groups: got %v", err)
	}
}

// The log has the reason that keeps candidates out of the group, such as unreachable brokers.
func TestNominationLogsTheReasonOfAFailure(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	must.OK(t, err)
	away := sync.OnceFunc(c.Close)
	t.Cleanup(away)
	lines := make(chan string, 1000)
	s, err := stores.Open(t.Context(), places.Parse(t, "kafka://"+c.ListenAddrs()[0]+"/t?mode=neli&group-topic=t&session=1s"),
		stores.Options{Create: true, Lease: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(log(lines), nil))})
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	nominate(t, s, "billing")
	away()
	for line := range lines {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, "the consumer group does not work") && strings.Contains(line, "group=billing") {
			return
		}
	}
}

// log is a writer of lines.
type log chan string

func (l log) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestNominationReportsErrors(t *testing.T) {
	t.Parallel()
	hosts := servers.Kafka(t)
	if _, err := enter(t, "kafka://"+hosts+"/t", true, ""); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ why, parameters, election, err, hint string }{
		{"no topic", "mode=neli", "billing", "there is no topic billing.neli for group billing", "add --create, name one"},
		{"no topic of that name", "mode=neli&group=g&group-topic=x", "billing", "there is no topic x for group g", "--create --topic x"},
		{"a name that no group has", "mode=neli", "a b", "cannot be named like election", "group=NAME"},
	} {
		t.Run(c.why, func(t *testing.T) {
			s, err := enter(t, "kafka://"+hosts+"/t?"+c.parameters, false, "")
			must.OK(t, err)
			_, err = s.Nominate(t.Context(), c.election)
			places.Says(t, err, c.err, c.hint)
		})
	}
	s, err := enter(t, "kafka://"+hosts+"/t", false, "")
	must.OK(t, err)
	if n, err := s.Nominate(t.Context(), "billing"); n != nil || err != nil {
		t.Errorf("without a group: %v, %v", n, err)
	}
}
