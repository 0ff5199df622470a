package kafkad

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/internal/test/ports"
)

// The users of the listeners with SASL/PLAIN. The password of each is its name. They have only the
// rights that Allow gives.
const (
	Candidate = "candidate"
	Observer  = "observer"
	Stranger  = "stranger"
)

// layout holds the ports of a cluster.
type layout struct {
	ID      string
	Plain   [Brokers]int // for the super user, and among the brokers
	SASL    [Brokers]int // for the users with checked rights
	Control [Brokers]int // of the controllers, which are in the same processes
}

func newLayout() (layout, error) {
	free, err := ports.Free(3 * Brokers)
	if err != nil {
		return layout{}, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:])
	l := layout{ID: base64.RawURLEncoding.EncodeToString(id[:])}
	copy(l.Plain[:], free)
	copy(l.SASL[:], free[Brokers:])
	copy(l.Control[:], free[2*Brokers:])
	return l, nil
}

// properties returns the configuration of broker n, counted from 1, with its data in a directory.
// Sessions are shorter than Kafka's default of 9 s, so that tests wait less for the next leader of
// a partition.
func (l layout) properties(n int, data string) string {
	var voters []string
	for i, port := range l.Control {
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, ports.Address(port)))
	}
	plain, sasl := "PLAINTEXT://"+ports.Address(l.Plain[n-1]), "SASL_PLAINTEXT://"+ports.Address(l.SASL[n-1])
	var users strings.Builder
	for _, user := range []string{Candidate, Observer, Stranger} {
		fmt.Fprintf(&users, " user_%s=%q", user, user)
	}
	return strings.Join([]string{
		"process.roles=broker,controller",
		fmt.Sprintf("node.id=%d", n),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"controller.listener.names=CONTROLLER",
		"inter.broker.listener.name=PLAINTEXT",
		fmt.Sprintf("listeners=%s,%s,CONTROLLER://%s", plain, sasl, ports.Address(l.Control[n-1])),
		fmt.Sprintf("advertised.listeners=%s,%s", plain, sasl),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
		"listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required" +
			users.String() + ";",
		"listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms=6000",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS",
		"log.dirs=" + data,
		settings,
	}, "\n")
}

// settings are the same for all brokers: three copies of everything, two of them needed for a
// write, short sessions, and few threads, since all brokers share a small machine.
const settings = `
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
transaction.state.log.num.partitions=3
initial.broker.registration.timeout.ms=600000
broker.heartbeat.interval.ms=1000
broker.session.timeout.ms=6000
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=500
group.consumer.heartbeat.interval.ms=1000
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=1000
num.network.threads=2
num.io.threads=2
`
