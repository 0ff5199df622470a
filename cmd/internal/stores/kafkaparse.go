package stores

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// shapeKafka is the form of a Kafka URL in hints.
const shapeKafka = "kafka://host:9092,host:9092/topic"

// kafkaPort is the default port of a broker.
const kafkaPort = "9092"

// kafkaParameters are those of kafka:// URLs.
var kafkaParameters = []string{"mode", "group", "group-topic", "nominee-only", "without-goneli", "session", "replicas", "timeout"}

// How long a broker may take for an answer.
const (
	shortTimeout = 200 * time.Millisecond
	usualTimeout = 2 * time.Second
	longTimeout  = time.Minute
)

// elsewhere says in hints where credentials belong.
const elsewhere = "credentials and TLS come from a file of client properties (--kafka-properties) or from " +
	"TENURE_KAFKA_USER, TENURE_KAFKA_PASSWORD and TENURE_KAFKA_SECURITY_PROTOCOL"

// parseKafka reads a URL of the form
// kafka://[user:password@]host[:port][,host[:port]...]/topic[?parameter=value[&...]].
func parseKafka(raw string) (*Kafka, error) {
	hosts, u, err := splitKafka(strings.TrimPrefix(raw, "kafka://"))
	if err != nil {
		return nil, err
	}
	k := &Kafka{User: u.User.Username()}
	k.Password, _ = u.User.Password()
	if u.User != nil && (k.User == "" || k.Password == "") {
		return nil, fault.New("write kafka://user:password@host/topic; "+elsewhere, "has no user or no password before @")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		switch {
		case validHost(host):
			k.Brokers = append(k.Brokers, host)
		case hosts != "":
			return nil, fault.New("give a URL such as "+shapeKafka, "a host is empty, or a port is not a number from 1 to 65535")
		}
	}
	if k.Topic, err = kafkaTopic(u.Path); err != nil {
		return nil, err
	}
	return k, k.set(u.RawQuery)
}

// ParseEmbeddedKafka reads kafka-embedded:[?parameter=value[&...]], with a topic of that name on
// brokers that are still to be started.
func ParseEmbeddedKafka(setting, raw, topic string) (*Kafka, error) {
	k := &Kafka{Topic: topic}
	_, rest, _ := strings.Cut(raw, ":")
	query, ok := strings.CutPrefix(rest, "?")
	err := k.set(query)
	if rest != "" && !ok {
		err = fault.New("give kafka-embedded: or kafka-embedded:?mode=neli, or "+shapeKafka, "the brokers of kafka-embedded run inside tenure-demo alone")
	}
	if err != nil {
		return nil, given(setting, raw, err)
	}
	return k, nil
}

// splitKafka takes the hosts out, because a URL would have only one.
func splitKafka(rest string) (hosts string, u *url.URL, err error) {
	end := strings.IndexAny(rest+"/", "/?#")
	user, hosts, ok := cutLast(rest[:end], "@")
	if !ok && strings.Contains(rest[end:], "@") {
		return "", nil, fault.New("write / ? and # of a password as %2F, %3F and %23", "has / or ? or # before @")
	}
	if ok {
		user += "@"
	}
	u, err = url.Parse("kafka://" + user + "host" + rest[end:])
	switch {
	case err != nil: // left out, since it may quote a part of the password
		return "", nil, fault.New("write special characters of a password as %XX; give a URL such as "+shapeKafka, "is not a valid URL")
	case u.Fragment != "" || strings.HasSuffix(rest, "#"):
		return "", nil, fault.New("write # of a password as %23", "has a fragment behind #")
	}
	return hosts, u, nil
}

// cutLast is strings.Cut at the last separator. If there is none, before is empty.
func cutLast(s, at string) (before, after string, found bool) {
	if i := strings.LastIndex(s, at); i >= 0 {
		return s[:i], s[i+len(at):], true
	}
	return "", s, false
}

// topicName matches names that Kafka accepts, up to maxTopic. A length in the expression would cost
// half a megabyte in every process.
var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

const maxTopic = 249

func kafkaTopic(path string) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	switch {
	case name == "":
		return "", fault.New("give a URL such as "+shapeKafka, "names no topic")
	case !validTopic(name):
		return "", fault.New("give a URL such as "+shapeKafka, "the name of a topic may have only letters, digits, . _ and -, at most 249")
	}
	return name, nil
}

func validTopic(name string) bool {
	return topicName.MatchString(name) && len(name) <= maxTopic && name != "." && name != ".."
}

// set takes the parameters.
func (k *Kafka) set(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fault.New("write & and % of a value as %26 and %25", "the parameters behind ? cannot be read")
	}
	if values.Get("mode") == "neli" {
		k.NELI = &NELI{}
	}
	for _, key := range keysIn(query) {
		if !slices.Contains(kafkaParameters, key) {
			return unknownKafkaParameter(key, values.Get(key))
		}
		if len(values[key]) > 1 {
			return fault.New("leave out one of them", "parameter %s is given twice", key)
		}
		if err := k.setOne(key, values.Get(key)); err != nil {
			return fault.New("give a URL such as "+shapeKafka+"?mode=neli&group=NAME&session=15s", "parameter %s %w", key, err)
		}
	}
	return nil
}

var errNeedsNELI = errors.New("needs mode=neli")

func (k *Kafka) setOne(key, value string) error {
	var err error
	switch {
	case value == "":
		return errors.New("is empty")
	case key == "mode":
		if value != "neli" && value != "log" {
			err = errors.New("must be log or neli")
		}
	case key == "replicas":
		k.Replicas, err = replicas(value)
	case key == "timeout":
		k.Timeout, err = span(value, shortTimeout, longTimeout)
	case k.NELI == nil:
		return errNeedsNELI
	default:
		err = k.NELI.setOne(key, value)
	}
	return err
}

func (n *NELI) setOne(key, value string) error {
	var err error
	switch key {
	case "group":
		n.Group = value
	case "group-topic":
		n.Topic = value
	case "nominee-only":
		n.NomineeOnly, err = truth(value)
	case "without-goneli":
		n.WithoutGoNELI, err = truth(value)
	case "session":
		n.Session, err = span(value, time.Second, 30*time.Minute)
	}
	if (key == "group" || key == "group-topic") && !validTopic(value) {
		err = errors.New("may have only letters, digits, . _ and -, at most 249")
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

func span(value string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < least || d > most {
		return 0, errors.New("must be a time from " + least.String() + " to " + most.String())
	}
	return d, nil
}

func unknownKafkaParameter(key, value string) error {
	hint := "known are " + strings.Join(kafkaParameters, ", ")
	if !names(key, value) {
		return fault.New(hint, "an unknown parameter has no value")
	}
	if secretive.MatchString(key) || strings.ContainsAny(key, ".") {
		hint = elsewhere
	}
	return fault.New(hint, "parameter %.40q is unknown", key)
}
