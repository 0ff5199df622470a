package clientprops

import (
	"maps"
	"slices"
	"strings"
)

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
