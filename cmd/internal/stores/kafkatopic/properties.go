package kafkatopic

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/magiconair/properties"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver/kafkalog/clientprops"
)

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
