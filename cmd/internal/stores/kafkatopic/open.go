package kafkatopic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/magiconair/properties"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/clientprops"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/nomination"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Open connects and opens the topic.
func (k *Place) Open(ctx context.Context, o kind.Options) (*kind.Opened, error) {
	news := newBrokerNews(o.OnConnection)
	connection, err := k.connection(o, news)
	if err != nil {
		return nil, err
	}
	store, err := kafkalog.Open(ctx, connection, k.Topic, k.driverOptions(o)...)
	if err != nil {
		return nil, k.Explain(news.silence(err))
	}
	opened := &kind.Opened{Driver: store, Close: store.Close}
	if k.NELI != nil {
		opened.Nominate = func(ctx context.Context, election string) (*kind.Nomination, error) {
			return k.nominate(ctx, connection, o, election)
		}
	}
	return opened, nil
}

func (k *Place) driverOptions(o kind.Options) []kafkalog.Option {
	var opts []kafkalog.Option
	if d := k.timeout(o.Lease); d != 0 {
		opts = append(opts, kafkalog.WithTimeout(d))
	}
	if k.Replicas != 0 {
		opts = append(opts, kafkalog.WithReplicas(k.Replicas))
	}
	if !o.Create {
		opts = append(opts, kafkalog.WithoutCreate())
	}
	return opts
}

// timeout returns the time for one broker to answer. It depends on the lease: after a broker that
// does not answer, there must be time to ask another one.
func (k *Place) timeout(lease time.Duration) time.Duration {
	if k.Timeout != 0 || lease == 0 {
		return k.Timeout
	}
	return min(max(lease/2, shortTimeout), usualTimeout)
}

// connection returns the options of the client. It reads the file of the properties again for each
// connection.
func (k *Place) connection(o kind.Options, news *brokerNews) ([]kgo.Opt, error) {
	read := func() (map[string]string, error) {
		now := *k
		if k.settings.File != "" {
			if err := now.readSettings(); err != nil {
				return nil, err
			}
		}
		return now.clientProperties(o), nil
	}
	opts, err := clientprops.Live(read, o.Stale)
	switch {
	case len(problems(err)) > 0:
		return nil, k.explainProperties(err)
	case err != nil:
		return nil, err
	}
	return append(opts, kgo.WithHooks(news)), nil
}

// clientProperties returns those of the client. The URL has precedence over the properties.
func (k *Place) clientProperties(o kind.Options) map[string]string {
	p := map[string]string{}
	maps.Copy(p, k.Properties)
	delete(p, "metadata.broker.list")
	p["bootstrap.servers"] = strings.Join(k.brokers(), ",")
	if p["client.id"] == "" && o.Client != "" {
		p["client.id"] = strings.ReplaceAll(o.Client, " ", "-")
	}
	if k.User != "" {
		logIn(p, k.User, k.Password)
	}
	return p
}

// brokerNews reports when a broker cannot be reached, and when it can again. The end of a
// connection alone is not reported: the library has several to each broker, and closes idle ones.
type brokerNews struct {
	told func(up bool, err error) // may be nil

	mu    sync.Mutex
	down  map[string]bool
	taken map[string]bool // the brokers that have accepted a connection
}

func newBrokerNews(told func(bool, error)) *brokerNews {
	return &brokerNews{told: told, down: map[string]bool{}, taken: map[string]bool{}}
}

var _ kgo.HookBrokerConnect = (*brokerNews)(nil)

// OnBrokerConnect is called by the library after each attempt.
func (b *brokerNews) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, conn net.Conn, err error) {
	at := net.JoinHostPort(meta.Host, fmt.Sprint(meta.Port))
	b.mu.Lock()
	was := b.down[at]
	b.down[at] = err != nil
	if conn != nil { // also if the handshake with the broker failed
		b.taken[at] = true
	}
	b.mu.Unlock()
	switch {
	case b.told == nil:
	case err != nil && !was:
		b.told(false, fmt.Errorf("broker %s: %w", at, kind.Root(err)))
	case err == nil && was:
		b.told(true, errors.New("broker "+at))
	}
}

// silentError is a timeout of brokers that have accepted connections. Another kind of server may
// listen there, such as a web server that waits for more data.
type silentError struct {
	at  string
	err error
}

func (e *silentError) Error() string { return e.at + " accepts connections and does not answer" }
func (e *silentError) Unwrap() error { return e.err }

// silence returns a silentError for a timeout, if a broker has accepted a connection.
func (b *brokerNews) silence(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var late net.Error
	if len(b.taken) == 0 || !errors.As(err, &late) || !late.Timeout() {
		return err
	}
	return &silentError{strings.Join(slices.Sorted(maps.Keys(b.taken)), ","), err}
}

func (k *Place) nominate(ctx context.Context, connection []kgo.Opt, o kind.Options, election string) (*kind.Nomination, error) {
	name := k.NELI.groupFor(election)
	if !validTopic(name) {
		return nil, fault.New("put group=NAME into the URL", "a consumer group cannot be named like election %q", election)
	}
	g, err := group.Join(ctx, connection, group.Config{
		Name: name, Topic: k.NELI.topicFor(election), SessionTimeout: k.NELI.Session, Replicas: k.Replicas, NoCreate: !o.Create,
		BesideGoNELI: !k.NELI.WithoutGoNELI, Logger: o.Logger,
	})
	if err != nil {
		return nil, k.explainGroup(name, k.NELI.topicFor(election), err)
	}
	by := nomination.By(g)
	by.Only = k.NELI.NomineeOnly
	return &kind.Nomination{
		Config:   by,
		Metadata: group.Metadata(name),
		Check:    func(leader map[string]string) error { return group.CheckLeader(name, leader) },
		Close:    g.Close,
	}, nil
}

// Nomination describes the consumer group that nominates the leader of an election.
func (k *Place) Nomination(election string) string {
	n := k.NELI
	if n == nil {
		return ""
	}
	text := fmt.Sprintf("Consumer group %s nominates the leader: the owner of partition 0 of %s. ", n.groupFor(election), n.topicFor(election))
	if n.NomineeOnly {
		return text + "No other candidate ever claims."
	}
	if n.WithoutGoNELI {
		return text + "Other candidates wait one lease longer before they claim."
	}
	return text + "Other candidates wait one lease longer before they claim, and claim only while the group confirms them as members."
}

// topicFor returns the topic that the group subscribes to.
func (n *NELI) topicFor(election string) string {
	if n.Topic != "" {
		return n.Topic
	}
	return n.groupFor(election) + ".neli"
}

func (n *NELI) groupFor(election string) string {
	if n.Group != "" {
		return n.Group
	}
	return election
}

// With returns the place with the properties that the settings name. Variables have precedence over
// the file.
func (k *Place) With(s kind.Settings) (kind.Place, error) {
	with := *k
	with.settings = s
	if err := with.readSettings(); err != nil {
		return nil, err
	}
	if len(with.brokers()) == 0 {
		return nil, fault.New(likeThis+", or properties with bootstrap.servers", "%s %s: names no broker", s.Place, k)
	}
	if _, err := with.connection(kind.Options{}, newBrokerNews(nil)); err != nil {
		return nil, err
	}
	return &with, nil
}

// readSettings reads the file and the variables. Its errors have hints.
func (k *Place) readSettings() error {
	s := k.settings
	k.Properties, k.origins = map[string]string{}, map[string]string{}
	if s.File != "" {
		all, err := readProperties(s.File)
		if err != nil {
			return fault.New("name a file such as Kafka's own tools take with --command-config", "%s %s: %w", s.Setting, fault.Shown(s.File), err)
		}
		for name, value := range all {
			k.Properties[name], k.origins[name] = value, s.Setting+" "+s.File
		}
	}
	k.fromEnvironment(s.Env)
	return nil
}

// readProperties reads a file as Java does, but leaves references to variables alone.
func readProperties(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err // without the name, which the caller puts in front
		}
		return nil, err
	}
	return parseProperties(text)
}

func parseProperties(text []byte) (map[string]string, error) {
	l := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	all, err := l.LoadBytes(text)
	if err != nil { // left out, since it may quote a value
		return nil, errors.New("is not a file of properties")
	}
	return all.Map(), nil
}

// Variables of the environment for the login, which has no flags.
const (
	kafkaUser     = "TENURE_KAFKA_USER"
	kafkaPassword = "TENURE_KAFKA_PASSWORD"
)

// kafkaVariable returns the variable for a property: TENURE_KAFKA_SECURITY_PROTOCOL for
// security.protocol.
func kafkaVariable(property string) string {
	return "TENURE_KAFKA_" + strings.ToUpper(strings.ReplaceAll(property, ".", "_"))
}

// Variables returns the variables of the environment that set properties for which there is no
// flag.
func Variables() []string {
	all := []string{kafkaUser, kafkaPassword}
	for _, name := range clientprops.Names() {
		all = append(all, kafkaVariable(name))
	}
	return all
}

// fromEnvironment sets the properties that variables name. It ignores empty variables.
func (k *Place) fromEnvironment(env func(string) string) {
	for _, name := range clientprops.Names() {
		if value := env(kafkaVariable(name)); value != "" {
			k.Properties[name], k.origins[name] = value, kafkaVariable(name)
		}
	}
	if user, password := env(kafkaUser), env(kafkaPassword); user != "" || password != "" {
		logIn(k.Properties, user, password)
		k.origins["sasl.username"], k.origins["sasl.password"] = kafkaUser, kafkaPassword
	}
}

// logIn sets the user and the password. If no mechanism or protocol is set, it sets the plain ones,
// as for a user and a password of other stores.
func logIn(p map[string]string, user, password string) {
	delete(p, "sasl.jaas.config")
	p["sasl.username"], p["sasl.password"] = user, password
	if p["sasl.mechanism"] == "" && p["sasl.mechanisms"] == "" {
		delete(p, "sasl.mechanisms")
		p["sasl.mechanism"] = "PLAIN"
	}
	switch strings.ToUpper(p["security.protocol"]) {
	case "", "PLAINTEXT":
		p["security.protocol"] = "SASL_PLAINTEXT"
	case "SSL":
		p["security.protocol"] = "SASL_SSL"
	}
}

// explainProperties names the source of each property that is wrong. The hint is for the first.
func (k *Place) explainProperties(err error) *fault.Error {
	var hint string
	var all []error
	for _, p := range problems(err) {
		origin := "properties"
		if from := k.origins[p.Name]; from != "" {
			origin = from
		}
		name := p.Name
		if !slices.Contains(clientprops.Names(), name) && !kind.IsName(name, k.Properties[name]) {
			name = "a line without a property" // perhaps a part of a secret
		}
		all = append(all, fmt.Errorf("%s: %s %s", origin, name, p.Fault))
		if hint == "" {
			hint = name + ": " + p.Remedy
		}
	}
	return fault.New(hint, "%w", errors.Join(all...))
}

// problems returns those that clientprops has joined.
func problems(err error) []*clientprops.Problem {
	var all []*clientprops.Problem
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			all = append(all, problems(one)...)
		}
		return all
	}
	var p *clientprops.Problem
	if errors.As(err, &p) {
		all = append(all, p)
	}
	return all
}
