// Package kafkatopic describes stores in topics of Kafka.
package kafkatopic

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
)

// Place is a topic of Kafka that holds elections.
type Place struct {
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

	settings kind.Settings
	origins  map[string]string // the source of each property, for errors
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

var parameters = []kind.Parameter{
	{Name: "mode", Value: "neli", Meaning: "a consumer group nominates a candidate: the owner of partition 0 of its topic"},
	{Name: "group", Value: "NAME", Meaning: "the group; by default its name is the election's"},
	{Name: "group-topic", Value: "NAME", Meaning: "topic of the group, any one will do; by default the group's name and .neli"},
	{Name: "nominee-only", Value: "true",
		Meaning: "only the nominee ever claims; by default other candidates may claim too, after waiting one lease longer"},
	{Name: "without-goneli", Value: "true",
		Meaning: "no process of goNELI joins the group any more, so other candidates may claim without a confirmation by the group"},
	{Name: "session", Value: "15s", Meaning: "how long a member of the group may be silent"},
	{Name: "replicas", Value: "N", Meaning: "how many brokers keep a topic that --create makes; by default three"},
	{Name: "timeout", Value: "2s", Meaning: "how long a broker may take to answer; by default half a lease, 2s at most"},
}

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:        "kafka",
		Container:  "topic",
		Schemes:    []kind.Scheme{{Name: "kafka", Form: "kafka://HOST,.../TOPIC"}},
		Refused:    map[string]error{"kafka-embedded": refuseEmbedded("give kafka-embedded: to tenure-demo, with parameters behind a ? at most")},
		About:      "Kafka, --store kafka://[USER:PASSWORD@]HOST[:PORT],.../TOPIC[?...], takes these parameters",
		Parameters: parameters,
		Notes: `The topic is for elections alone. TLS and users come from --kafka-properties, a file of client
properties as Kafka's own tools take it: certificates in PEM, sasl.mechanism PLAIN, SCRAM-SHA-256 or
SCRAM-SHA-512. They may also come from the environment: TENURE_KAFKA_USER, TENURE_KAFKA_PASSWORD,
and for example TENURE_KAFKA_SECURITY_PROTOCOL for security.protocol. The URL overrides the
variables, and they override the file.`,
		TokenDigits: len("9999"), // offsets of the topic
		DemoLease:   2 * time.Second,
		Parse:       func(_, raw string) (kind.Place, error) { return parse(raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

// String returns the URL without credentials.
func (k *Place) String() string {
	u := "kafka://"
	if k.User != "" {
		u += fault.Hidden + "@"
	}
	return kind.With(u+strings.Join(k.Brokers, ",")+"/"+k.Topic, "?", k.given()...)
}

// given returns the parameters of the URL, as they would be written.
func (k *Place) given() (all [][2]string) {
	add := func(wanted bool, key, value string) {
		if wanted {
			all = append(all, [2]string{key, value})
		}
	}
	if n := k.NELI; n != nil {
		add(true, "mode", "neli")
		add(true, "group", n.Group)
		add(true, "group-topic", n.Topic)
		add(n.NomineeOnly, "nominee-only", "true")
		add(n.WithoutGoNELI, "without-goneli", "true")
		add(n.Session != 0, "session", n.Session.String())
	}
	add(k.Replicas != 0, "replicas", strconv.Itoa(k.Replicas))
	add(k.Timeout != 0, "timeout", k.Timeout.String())
	return all
}

// GoString is String.
func (k *Place) GoString() string { return k.String() }

// Product returns Kafka.
func (k *Place) Product() string { return "Kafka" }

// Pushes returns true.
func (k *Place) Pushes() bool { return true }

// brokers returns those of the URL, or else of the properties, with their ports.
func (k *Place) brokers() []string {
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

// Commands returns those of Kafka's own tools. None of them forces a failover: if all records of
// the topic are removed, the leader writes its next one after them, and goes on.
func (k *Place) Commands(string) kind.Commands {
	return kind.Commands{
		Look: "kafka-console-consumer.sh " + k.at() + " --topic " + k.Topic + " --partition 0 --offset earliest " +
			"--formatter-property print.headers=true --formatter-property print.offset=true",
	}
}

// at returns the options by which Kafka's own tools reach the same brokers.
func (k *Place) at() string {
	at := "--bootstrap-server " + strings.Join(k.brokers(), ",")
	if k.User != "" || len(k.Properties) > 0 {
		at += " --command-config " + cmp.Or(k.settings.File, "client.properties")
	}
	return at
}

// Limits returns those of every topic.
func (k *Place) Limits() (driver.Bounded, error) { return new(kafkalog.Store), nil }

// The form of a URL in hints.
const (
	example  = "kafka://host:9092,host:9092/topic"
	likeThis = "give a URL such as " + example
)

// kafkaPort is the default port of a broker.
const kafkaPort = "9092"

// How long a broker may take for an answer.
const (
	shortTimeout = 200 * time.Millisecond
	usualTimeout = 2 * time.Second
	longTimeout  = time.Minute
)

// elsewhere says in hints where credentials belong.
const elsewhere = "credentials and TLS come from a file of client properties (--kafka-properties) or from " +
	"TENURE_KAFKA_USER, TENURE_KAFKA_PASSWORD and TENURE_KAFKA_SECURITY_PROTOCOL"

// parse reads a URL of the form
// kafka://[user:password@]host[:port][,host[:port]...]/topic[?parameter=value[&...]].
func parse(raw string) (*Place, error) {
	hosts, u, err := split(strings.TrimPrefix(raw, "kafka://"))
	if err != nil {
		return nil, err
	}
	k := &Place{User: u.User.Username()}
	k.Password, _ = u.User.Password()
	if u.User != nil && (k.User == "" || k.Password == "") {
		return nil, fault.New("write kafka://user:password@host/topic; "+elsewhere, "has no user or no password before @")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		switch {
		case kind.ValidHost(host):
			k.Brokers = append(k.Brokers, host)
		case hosts != "":
			return nil, fault.New(likeThis, "a host is empty, or a port is not a number from 1 to 65535")
		}
	}
	if k.Topic, err = topicIn(u.Path); err != nil {
		return nil, err
	}
	return k, k.set(u.RawQuery)
}

// ParseEmbedded reads kafka-embedded:[?parameter=value[&...]], with a topic of that name on brokers
// that are still to be started.
func ParseEmbedded(raw, topic string) (*Place, error) {
	k := &Place{Topic: topic}
	_, rest, _ := strings.Cut(raw, ":")
	query, ok := strings.CutPrefix(rest, "?")
	if rest != "" && !ok {
		return nil, refuseEmbedded("give kafka-embedded: or kafka-embedded:?mode=neli")
	}
	return k, k.set(query)
}

func refuseEmbedded(hint string) error {
	return fault.New(hint+", or "+example, "the brokers of kafka-embedded run inside tenure-demo alone")
}

// split takes the hosts out, because a URL would have only one.
func split(rest string) (hosts string, u *url.URL, err error) {
	end := strings.IndexAny(rest+"/", "/?#")
	user, hosts, ok := kind.CutLast(rest[:end], "@")
	if !ok && strings.Contains(rest[end:], "@") {
		return "", nil, fault.New("write / ? and # of a password as %2F, %3F and %23", "has / or ? or # before @")
	}
	if ok {
		user += "@"
	}
	u, err = url.Parse("kafka://" + user + "host" + rest[end:])
	switch {
	case err != nil: // left out, since it may quote a part of the password
		return "", nil, fault.New("write special characters of a password as %XX; give a URL such as "+example, "is not a valid URL")
	case u.Fragment != "" || strings.HasSuffix(rest, "#"):
		return "", nil, fault.New("write # of a password as %23", "has a fragment behind #")
	}
	return hosts, u, nil
}

// topicName matches names that Kafka accepts, up to maxTopic. A length in the expression would cost
// half a megabyte in every process.
var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

const maxTopic = 249

func topicIn(path string) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	switch {
	case name == "":
		return "", fault.New(likeThis, "names no topic")
	case !validTopic(name):
		return "", fault.New(likeThis, "the name of a topic may have only letters, digits, . _ and -, at most 249")
	}
	return name, nil
}

func validTopic(name string) bool {
	return topicName.MatchString(name) && len(name) <= maxTopic && name != "." && name != ".."
}

// set takes the parameters.
func (k *Place) set(query string) error {
	values, err := kind.ParseQuery(query)
	if err != nil {
		return err
	}
	if values.Get("mode") == "neli" {
		k.NELI = &NELI{}
	}
	q := kind.Query{
		Known: kind.Names(parameters), Hint: likeThis + "?mode=neli&group=NAME&session=15s", Elsewhere: elsewhere,
		IsCredential: secretive.MatchString,
	}
	return q.Each(query, k.setOne)
}

func (k *Place) setOne(key, value string) (err error) {
	switch {
	case key == "mode":
		if value != "neli" && value != "log" {
			err = errors.New("must be log or neli")
		}
	case key == "replicas":
		k.Replicas, err = replicas(value)
	case key == "timeout":
		k.Timeout, err = kind.Duration(value, shortTimeout, longTimeout)
	case k.NELI == nil:
		err = errors.New("needs mode=neli")
	case key == "group" || key == "group-topic":
		if !validTopic(value) {
			err = errors.New("may have only letters, digits, . _ and -, at most 249")
		}
		if key == "group" {
			k.NELI.Group = value
		} else {
			k.NELI.Topic = value
		}
	case key == "nominee-only":
		k.NELI.NomineeOnly, err = kind.Bool(value)
	case key == "without-goneli":
		k.NELI.WithoutGoNELI, err = kind.Bool(value)
	case key == "session":
		k.NELI.Session, err = kind.Duration(value, time.Second, 30*time.Minute)
	}
	return err
}

func replicas(value string) (int, error) {
	n, err := strconv.ParseInt(value, 10, 16)
	if err != nil || n < 1 {
		return 0, errors.New("must be a whole number from 1 to 32767")
	}
	return int(n), nil
}

// secretive finds parameters by which people may try to pass credentials, and properties.
var secretive = regexp.MustCompile(`(?i)key|secret|token|password|credential|profile|signature|[.]`)
