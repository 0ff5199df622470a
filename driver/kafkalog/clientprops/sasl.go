package clientprops

import (
	"slices"
	"strings"
)

const mechanismRemedy = "log in with sasl.mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, or with a certificate"

// mechanisms are the supported ones, each with its login module in Java.
var mechanisms = map[string]string{
	"PLAIN":         "PlainLoginModule",
	"SCRAM-SHA-256": "ScramLoginModule",
	"SCRAM-SHA-512": "ScramLoginModule",
}

// protocol reads security.protocol; wrong is true for an unknown value.
func (r *reader) protocol() (overTLS, withSASL, wrong bool) {
	switch strings.ToUpper(r.values["security.protocol"]) {
	case "", "PLAINTEXT":
		return false, false, false
	case "SSL":
		return true, false, false
	case "SASL_PLAINTEXT":
		return false, true, false
	case "SASL_SSL":
		return true, true, false
	}
	return false, false, true
}

// sasl returns an empty mechanism if there is no login.
func (r *reader) sasl() (string, login) {
	_, with, wrong := r.protocol()
	switch {
	case wrong:
		r.wrong("security.protocol", "is unknown", "give PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
		return "", login{}
	case !with:
		r.useless("sasl.", "security.protocol SASL_SSL or SASL_PLAINTEXT")
		return "", login{}
	}
	mechanism := strings.ToUpper(r.values["sasl.mechanism"])
	if _, ok := mechanisms[mechanism]; !ok {
		fault := "is not supported: only PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are"
		if !r.has("sasl.mechanism") {
			fault = "is not given, and GSSAPI, which Kafka would take, is not supported"
		}
		r.wrong("sasl.mechanism", fault, mechanismRemedy)
		return "", login{}
	}
	return mechanism, r.login(mechanism)
}

// useless finds properties that would have no effect, since security.protocol is another.
func (r *reader) useless(prefix, without string) {
	for _, name := range known {
		if strings.HasPrefix(name, prefix) && r.has(name) {
			r.wrong(name, "has no effect without "+without, "give that, or leave this out")
		}
	}
}

// login is the identity that logs in.
type login struct {
	user, password string
	token          bool // a delegation token
}

// login returns the login from one of its two forms.
func (r *reader) login(mechanism string) login {
	names := slices.DeleteFunc([]string{"sasl.username", "sasl.password"}, func(n string) bool { return !r.has(n) })
	if r.has("sasl.jaas.config") {
		for _, n := range names {
			r.wrong(n, "is given besides sasl.jaas.config", "leave out one of them")
		}
		return r.jaas(mechanism)
	}
	l := login{user: r.values["sasl.username"], password: r.values["sasl.password"]}
	switch {
	case len(names) == 0:
		r.problem("sasl.jaas.config", "is not given, so that nobody logs in", jaasRemedy(mechanism))
	case l.user == "":
		r.wrong("sasl.username", "is empty", "give the user's name")
	case l.password == "":
		r.wrong("sasl.password", "is empty", "give the user's password")
	}
	return l
}
