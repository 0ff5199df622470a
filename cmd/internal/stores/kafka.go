package stores

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
)

// Kafka is a topic of Kafka that holds elections.
type Kafka struct {
	// Brokers are hosts, with or without a port; if empty, those of the properties apply.
	Brokers  []string `json:"brokers,omitempty"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password,omitempty"`
	Topic    string   `json:"topic"`
	// NELI is nil where no candidate has precedence.
	NELI *NELI `json:"neli,omitempty"`
	// Replicas is how many brokers keep a topic that is created; 0: three, or all where there are
	// fewer.
	Replicas int `json:"replicas,omitempty"`
	// Timeout is how long a broker may take for an answer; 0: half of the lease, 2 s at most.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Properties are those of Kafka's clients, passwords among them.
	Properties map[string]string `json:"properties,omitempty"`

	settings KafkaSettings
	origins  map[string]string // the source of each property, for errors
	file     string            // of client properties; empty: none
}

// NELI is a consumer group. The owner of its partition 0 has precedence.
type NELI struct {
	// Group is its name; empty: the election's.
	Group string `json:"group,omitempty"`
	// Topic is the topic that the group subscribes to; empty: Group + ".neli".
	Topic string `json:"topic,omitempty"`
	// NomineeOnly lets no other candidate claim, ever.
	NomineeOnly bool `json:"nomineeOnly,omitempty"`
	// WithoutGoNELI: no process of goNELI joins the group, so other candidates claim without a
	// confirmation by the group.
	WithoutGoNELI bool `json:"withoutGoNELI,omitempty"`
	// Session is how long a member may be silent; 0: 15 s.
	Session time.Duration `json:"session,omitempty"`
}

// String returns the URL without credentials.
func (k *Kafka) String() string {
	u := "kafka://"
	if k.User != "" {
		u += hidden + "@"
	}
	u += strings.Join(k.Brokers, ",") + "/" + k.Topic
	sign := "?"
	for _, p := range k.parameters() {
		if p.value != "" {
			u += sign + p.key + "=" + p.value
			sign = "&"
		}
	}
	return u
}

// GoString is String.
func (k *Kafka) GoString() string { return k.String() }

func (k *Kafka) name() string { return k.String() }

// parameters returns those of the URL, as they would be written; the value is empty if one is not
// set.
func (k *Kafka) parameters() []parameter {
	var ps []parameter
	if n := k.NELI; n != nil {
		ps = append(ps, parameter{"mode", "neli"}, parameter{"group", n.Group}, parameter{"group-topic", n.Topic})
		if n.NomineeOnly {
			ps = append(ps, parameter{"nominee-only", "true"})
		}
		if n.WithoutGoNELI {
			ps = append(ps, parameter{"without-goneli", "true"})
		}
		if n.Session != 0 {
			ps = append(ps, parameter{"session", n.Session.String()})
		}
	}
	if k.Replicas != 0 {
		ps = append(ps, parameter{"replicas", strconv.Itoa(k.Replicas)})
	}
	if k.Timeout != 0 {
		ps = append(ps, parameter{"timeout", k.Timeout.String()})
	}
	return ps
}

// brokers returns those of the URL, or else of the properties, with their ports.
func (k *Kafka) brokers() []string {
	all := k.Brokers
	if len(all) == 0 {
		all = strings.Split(cmp.Or(k.Properties["bootstrap.servers"], k.Properties["metadata.broker.list"]), ",")
	}
	ported := make([]string, 0, len(all))
	for _, b := range all {
		if b = strings.TrimSpace(b); b == "" {
			continue
		}
		if i := strings.LastIndex(b, ":"); i < 0 || strings.HasSuffix(b, "]") {
			b += ":" + kafkaPort
		}
		ported = append(ported, b)
	}
	return ported
}

// commands returns those of Kafka's own tools. None of them forces a failover: if all records of
// the topic are removed, the leader writes its next one after them, and goes on.
func (k *Kafka) commands(string) Commands {
	return Commands{
		Look: "kafka-console-consumer.sh " + k.at() + " --topic " + k.Topic + " --partition 0 --offset earliest " +
			"--formatter-property print.headers=true --formatter-property print.offset=true",
	}
}

// at returns the options by which Kafka's own tools reach the same brokers.
func (k *Kafka) at() string {
	at := "--bootstrap-server " + strings.Join(k.brokers(), ",")
	if k.User != "" || len(k.Properties) > 0 {
		at += " --command-config " + cmp.Or(k.file, "client.properties")
	}
	return at
}

// limits returns those of every topic, without a call of a broker.
func (k *Kafka) limits() (driver.Bounded, error) { return new(kafkalog.Store), nil }
