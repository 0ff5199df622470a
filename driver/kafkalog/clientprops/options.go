// Package clientprops turns the properties of Kafka's clients into options of a client of franz-go.
// Use it in programs that should take the same file as Kafka's own tools: that of --command-config,
// which is often named client.properties.
//
// It knows the properties that a connection needs, by the names of the Java clients and by those of
// librdkafka where they differ:
//
//	bootstrap.servers (metadata.broker.list)   hosts with ports, 9092 where there is none
//	client.id
//	security.protocol                          PLAINTEXT (default), SSL, SASL_PLAINTEXT, SASL_SSL
//	sasl.mechanism (sasl.mechanisms)           PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
//	sasl.jaas.config                           PlainLoginModule or ScramLoginModule,
//	                                           with username and password
//	sasl.username, sasl.password               the same for librdkafka
//	ssl.truststore.location (ssl.ca.location)  file of authorities in PEM; default: the system's
//	ssl.truststore.certificates (ssl.ca.pem)   authorities in PEM
//	ssl.keystore.location                      file with the client's key and certificates in PEM
//	ssl.keystore.key (ssl.key.pem), ssl.keystore.certificate.chain (ssl.certificate.pem)
//	ssl.key.location, ssl.certificate.location the same in files
//	ssl.truststore.type, ssl.keystore.type     PEM
//	ssl.endpoint.identification.algorithm      https if not given; empty or none:
//	                                           a certificate may be for any host
//	ssl.protocol, ssl.enabled.protocols        TLSv1.2, TLSv1.3
//	connections.max.idle.ms, metadata.max.age.ms
//
// Nothing is ignored: an unknown or unsupported property is an error with its name.
package clientprops

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver/reread"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Options returns the options of a client that has these properties. The client reads the files
// that they name again for each connection. Without bootstrap.servers there are no brokers among
// the options. With TLS there is a kgo.Dialer among them: another one would connect without TLS.
//
// The error joins a *Problem for each property that is wrong, in the order of their names. It shows
// no password and no key.
func Options(properties map[string]string) ([]kgo.Opt, error) {
	return Live(func() (map[string]string, error) { return properties, nil }, nil)
}

// Live is Options for properties that may be replaced while the client runs, such as those of a
// file. The function read returns them, now and for each connection. Only the user, the password,
// the client's certificate and the authorities follow them; all else stays.
//
// While read returns an error, or a property or a file is wrong, the last good ones stay in use. If
// report is not nil, it is called with the reason, once for each.
func Live(read func() (map[string]string, error), report func(error)) ([]kgo.Opt, error) {
	properties, err := read()
	if err != nil {
		return nil, err
	}
	first, opts, err := parse(properties)
	if err != nil {
		return nil, err
	}
	return append(opts, newLive(first, read, report).options(first)...), nil
}

// parse returns the identity of a client, and the other options. Its error is that of Options.
func parse(properties map[string]string) (identity, []kgo.Opt, error) {
	r := &reader{values: map[string]string{}, names: map[string]string{}}
	r.accept(properties)
	opts := r.connection()
	var who identity
	who.mechanism, who.login = r.sasl()
	who.tls = r.tls()
	slices.SortStableFunc(r.problems, func(a, b *Problem) int { return strings.Compare(a.Name, b.Name) })
	var all []error
	for _, p := range r.problems {
		all = append(all, p)
	}
	return who, opts, errors.Join(all...)
}

// Problem is an error in one property.
type Problem struct {
	// Name is the name of the property, as it was given.
	Name string
	// Fault describes the error, and Remedy how to fix it.
	Fault, Remedy string
}

// Error returns one line.
func (p *Problem) Error() string { return p.Name + " " + p.Fault + " (" + p.Remedy + ")" }

// reader collects problems.
type reader struct {
	values   map[string]string // by the names of the Java clients
	names    map[string]string // as they were given
	problems []*Problem
}

// accept takes the known properties. White space around a value means nothing.
func (r *reader) accept(properties map[string]string) {
	for _, given := range slices.Sorted(maps.Keys(properties)) {
		name := given
		if alias, ok := aliases[given]; ok {
			name = alias
		}
		switch first, twice := r.names[name]; {
		case twice:
			r.problem(given, "is given besides "+first+", which is the same", "leave out one of them")
		case slices.Contains(known, name):
			r.values[name], r.names[name] = strings.TrimSpace(properties[given]), given
		default:
			r.problem(given, "is "+strangeness(given), strangeRemedy(given))
		}
	}
}

func (r *reader) problem(name, fault, remedy string) {
	r.problems = append(r.problems, &Problem{name, fault, remedy})
}

// wrong adds a problem of a property that may have been given by another name.
func (r *reader) wrong(name, fault, remedy string) {
	if given, ok := r.names[name]; ok {
		name = given
	}
	r.problem(name, fault, remedy)
}

func (r *reader) has(name string) bool {
	_, ok := r.values[name]
	return ok
}

// list returns the parts of a value between commas.
func list(value string) []string {
	var all []string
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

func (r *reader) connection() []kgo.Opt {
	var opts []kgo.Opt
	if r.has("bootstrap.servers") {
		opts = append(opts, kgo.SeedBrokers(r.brokers()...))
	}
	if id := r.values["client.id"]; id != "" {
		opts = append(opts, kgo.ClientID(id))
	}
	if d, ok := r.millis("connections.max.idle.ms"); ok {
		opts = append(opts, kgo.ConnIdleTimeout(d))
	}
	if d, ok := r.millis("metadata.max.age.ms"); ok {
		opts = append(opts, kgo.MetadataMaxAge(d))
	}
	return opts
}

func (r *reader) brokers() []string {
	all := list(r.values["bootstrap.servers"])
	for _, b := range all {
		if !validBroker(b) {
			r.wrong("bootstrap.servers", "names a broker that is not host:port", "give them as kafka-1:9092,kafka-2:9092")
			return nil
		}
	}
	if len(all) == 0 {
		r.wrong("bootstrap.servers", "names no broker", "give them as kafka-1:9092,kafka-2:9092")
	}
	return all
}

// validBroker reports whether this is a host, or a host and a port from 1 to 65535.
func validBroker(broker string) bool {
	host, port, err := net.SplitHostPort(broker)
	if err != nil {
		host, port, err = net.SplitHostPort(broker + ":1")
	}
	n, notNumber := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && notNumber == nil && n > 0 && !strings.ContainsAny(host, "/@ ")
}

// millis returns a time that is given in milliseconds.
func (r *reader) millis(name string) (time.Duration, bool) {
	if !r.has(name) {
		return 0, false
	}
	n, err := strconv.ParseInt(r.values[name], 10, 32)
	if err != nil || n < int64(leastMillis) {
		r.wrong(name, "is not a number of milliseconds of at least "+strconv.Itoa(leastMillis), "leave it out, or give such a number")
		return 0, false
	}
	return time.Duration(n) * time.Millisecond, true
}

// leastMillis is the shortest useful time for keeping a connection, or metadata of the brokers.
const leastMillis = 1000

// known are the names of the Java clients, and those of librdkafka for properties that only it has.
var known = []string{
	"bootstrap.servers",
	"client.id",
	"connections.max.idle.ms",
	"metadata.max.age.ms",
	"sasl.jaas.config",
	"sasl.mechanism",
	"sasl.password",
	"sasl.username",
	"security.protocol",
	"ssl.certificate.location",
	"ssl.enabled.protocols",
	"ssl.endpoint.identification.algorithm",
	"ssl.key.location",
	"ssl.keystore.certificate.chain",
	"ssl.keystore.key",
	"ssl.keystore.location",
	"ssl.keystore.type",
	"ssl.protocol",
	"ssl.truststore.certificates",
	"ssl.truststore.location",
	"ssl.truststore.type",
}

// aliases are librdkafka's names for the same properties.
var aliases = map[string]string{
	"metadata.broker.list": "bootstrap.servers",
	"sasl.mechanisms":      "sasl.mechanism",
	"ssl.ca.location":      "ssl.truststore.location",
	"ssl.ca.pem":           "ssl.truststore.certificates",
	"ssl.certificate.pem":  "ssl.keystore.certificate.chain",
	"ssl.key.pem":          "ssl.keystore.key",
}

// Names returns the names of all properties that Options takes, in order.
func Names() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(aliases)), known...)))
}

// decided are properties of producers, consumers and connections whose values an election
// determines itself.
var decided = []string{
	"acks", "allow.auto.create.topics", "auto.offset.reset", "batch.size", "buffer.memory", "check.crcs", "client.rack",
	"compression.type", "default.api.timeout.ms", "delivery.timeout.ms", "enable.auto.commit", "enable.idempotence",
	"fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "isolation.level", "key.deserializer", "key.serializer", "linger.ms",
	"max.block.ms", "max.in.flight.requests.per.connection", "max.request.size", "message.timeout.ms", "partitioner.class",
	"reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.required.acks", "request.timeout.ms", "retries", "retry.backoff.max.ms",
	"retry.backoff.ms", "socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms", "socket.timeout.ms",
	"transactional.id", "value.deserializer", "value.serializer",
}

// refused are properties of connections that are not supported, with the remedy.
var refused = map[string]string{
	"enable.ssl.certificate.verification": "name the authority with ssl.truststore.location; " +
		"an empty ssl.endpoint.identification.algorithm lets certificates of other hosts pass",
	"sasl.client.callback.handler.class":  mechanismRemedy,
	"sasl.kerberos.service.name":          mechanismRemedy,
	"sasl.login.callback.handler.class":   mechanismRemedy,
	"sasl.login.class":                    mechanismRemedy,
	"sasl.oauthbearer.token.endpoint.url": mechanismRemedy,
	"ssl.cipher.suites":                   "leave it out: those that are safe are used",
	"ssl.engine.factory.class":            "give certificates in PEM",
	"ssl.key.password":                    decryptRemedy,
	"ssl.keystore.password":               "leave it out: PEM has none",
	"ssl.truststore.password":             "leave it out: PEM has none",
}

// strangeness describes why a property is not known.
func strangeness(name string) string {
	switch {
	case slices.Contains(decided, name):
		return "decided by the election"
	case refused[name] != "":
		return "not supported"
	case strings.TrimSpace(name) == "":
		return "a property without a name"
	}
	return "not known"
}

func strangeRemedy(name string) string {
	if remedy := refused[name]; remedy != "" {
		return remedy
	}
	return "leave it out"
}

var errOtherWay = errors.New("the properties have another security.protocol, sasl.mechanism or " +
	"ssl.endpoint.identification.algorithm now; start this process again to use it")

// identity is what a connection shows to a broker, and the authorities that it trusts.
type identity struct {
	mechanism string // empty: no login
	login     login
	tls       *tls.Config // nil: no TLS
}

// sameWay reports whether another identity connects and logs in in the same way.
func (i identity) sameWay(as identity) bool {
	if i.tls != nil && as.tls != nil && i.tls.InsecureSkipVerify != as.tls.InsecureSkipVerify {
		return false
	}
	return i.mechanism == as.mechanism && (i.tls == nil) == (as.tls == nil)
}

// live gives each connection the identity that the properties have then.
type live struct{ source *reread.Source[identity] }

func newLive(first identity, read func() (map[string]string, error), report func(error)) live {
	return live{reread.New(first, func(context.Context) (identity, error) {
		properties, err := read()
		if err != nil {
			return identity{}, err
		}
		now, _, err := parse(properties)
		if err == nil && !now.sameWay(first) {
			err = errOtherWay
		}
		return now, err
	}, report)}
}

func (l live) options(first identity) []kgo.Opt {
	var opts []kgo.Opt
	if first.mechanism != "" {
		opts = append(opts, kgo.SASL(l.logIn(first.mechanism)))
	}
	if first.tls != nil {
		d := &dialer{live: l}
		opts = append(opts, kgo.Dialer(d.dial), kgo.WithHooks(d))
	}
	return opts
}

func (l live) logIn(mechanism string) sasl.Mechanism {
	if mechanism == "PLAIN" {
		return plain.Plain(func(ctx context.Context) (plain.Auth, error) {
			now := l.source.Get(ctx).login
			return plain.Auth{User: now.user, Pass: now.password}, nil
		})
	}
	auth := func(ctx context.Context) (scram.Auth, error) {
		now := l.source.Get(ctx).login
		return scram.Auth{User: now.user, Pass: now.password, IsToken: now.token}, nil
	}
	if mechanism == "SCRAM-SHA-256" {
		return scram.Sha256(auth)
	}
	return scram.Sha512(auth)
}

// dialer makes connections with TLS. It is also a hook, because only the client knows its time
// limit for dialing.
type dialer struct {
	live
	timeout atomic.Int64
}

// OnNewClient is called by the library.
func (d *dialer) OnNewClient(c *kgo.Client) {
	if limit, ok := c.OptValue(kgo.DialTimeout).(time.Duration); ok {
		d.timeout.Store(int64(limit))
	}
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	c := d.source.Get(ctx).tls.Clone()
	c.ServerName = host
	plain := &net.Dialer{Timeout: time.Duration(d.timeout.Load())}
	return (&tls.Dialer{NetDialer: plain, Config: c}).DialContext(ctx, network, address)
}
