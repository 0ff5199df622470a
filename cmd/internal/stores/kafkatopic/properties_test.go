package kafkatopic_test

import (
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
)

// clientProperties is a file as Kafka's own tools use it.
const clientProperties = `# for the tools
security.protocol = SASL_PLAINTEXT
sasl.mechanism: SCRAM-SHA-256
! over several lines
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
  username="user" \
  password="s3cret${user}";
client.id=\u0062illing
`

// with parses a place in Kafka with these variables and, if text is not empty, a file of
// properties.
func with(t *testing.T, url, text string, env map[string]string) (stores.Place, error) {
	t.Helper()
	s := stores.Settings{Setting: "--kafka-properties", Env: func(name string) string { return env[name] }}
	if text != "" {
		t.Chdir(t.TempDir())
		s.File = "client.properties"
		must.Write(t, filepath.Clean(s.File), text)
	}
	p, _, err := places.Parse(t, url).With(s)
	return p, err
}

func TestPropertiesAreReadAsInJava(t *testing.T) {
	p, err := with(t, "kafka://h/t", clientProperties, nil)
	must.OK(t, err)
	want := map[string]string{
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "client.id": "billing",
		"sasl.jaas.config": `org.apache.kafka.common.security.scram.ScramLoginModule required username="user" password="s3cret${user}";`,
	}
	if !maps.Equal(p.At.(*kafkatopic.Place).Properties, want) {
		t.Errorf("got %q", p.At.(*kafkatopic.Place).Properties)
	}
	if got := p.Commands("k").Look; !strings.Contains(got, " --command-config client.properties ") {
		t.Errorf("the command is %s", got)
	}
}

func TestURLOverridesVariablesAndBothOverrideTheFile(t *testing.T) {
	type env = map[string]string
	for _, c := range []struct {
		why, url, text string
		env            env
		want           map[string]string
	}{
		{"nothing", "kafka://h/t", "", nil, map[string]string{}},
		{"a variable", "kafka://h/t", "", env{"TENURE_KAFKA_SECURITY_PROTOCOL": "SSL"}, map[string]string{"security.protocol": "SSL"}},
		{
			"a variable and the file", "kafka://h/t", "client.id=a\nsecurity.protocol=SSL", env{"TENURE_KAFKA_CLIENT_ID": "b"},
			map[string]string{"client.id": "b", "security.protocol": "SSL"},
		},
		{
			"a user", "kafka://h/t", "", env{"TENURE_KAFKA_USER": "u", "TENURE_KAFKA_PASSWORD": "p"}, map[string]string{
				"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p",
			},
		},
		{
			"a user over TLS", "kafka://h/t", "security.protocol=SSL", env{"TENURE_KAFKA_USER": "u", "TENURE_KAFKA_PASSWORD": "p"}, map[string]string{
				"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p",
			},
		},
		{
			"another user than the file's", "kafka://h/t", clientProperties, env{"TENURE_KAFKA_USER": "u", "TENURE_KAFKA_PASSWORD": "p"}, map[string]string{
				"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "u", "sasl.password": "p",
				"client.id": "billing",
			},
		},
		{"brokers of the file", "kafka:///t", "bootstrap.servers=a:1, b", nil, map[string]string{"bootstrap.servers": "a:1, b"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			p, err := with(t, c.url, c.text, c.env)
			must.OK(t, err)
			if !maps.Equal(p.At.(*kafkatopic.Place).Properties, c.want) {
				t.Errorf("got %q", p.At.(*kafkatopic.Place).Properties)
			}
		})
	}
}

func TestWrongPropertiesNameTheirOrigin(t *testing.T) {
	type env = map[string]string
	for _, c := range []struct {
		why, url, text string
		env            env
		want, hint     string
	}{
		{"not supported", "kafka://h/t", "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI", nil,
			"--kafka-properties client.properties: sasl.mechanism is not supported", "SCRAM-SHA-512"},
		{"no PEM", "kafka://h/t", "security.protocol=SSL\nssl.truststore.type=JKS", nil,
			"--kafka-properties client.properties: ssl.truststore.type is not PEM", "keytool"},
		{"not known", "kafka://h/t", "group.id=g", nil, "--kafka-properties client.properties: group.id is not known", "leave it out"},
		{"two of them", "kafka://h/t", "acks=1\nlinger.s=3", nil, "acks is decided by the election\n--kafka-properties client.properties: linger.s is not known", ""},
		{"a variable", "kafka://h/t", "", env{"TENURE_KAFKA_SECURITY_PROTOCOL": "x"}, "TENURE_KAFKA_SECURITY_PROTOCOL: security.protocol is unknown", "SASL_SSL"},
		{"no password", "kafka://h/t", "", env{"TENURE_KAFKA_USER": "u"}, "TENURE_KAFKA_PASSWORD: sasl.password is empty", "password"},
		{"no user", "kafka://h/t", "", env{"TENURE_KAFKA_PASSWORD": "s3cret"}, "TENURE_KAFKA_USER: sasl.username is empty", "name"},
		{"no brokers", "kafka:///t", "", nil, "--store kafka:///t: names no broker", "bootstrap.servers"},
		{"none in the file either", "kafka:///t", "client.id=x", nil, "--store kafka:///t: names no broker", "bootstrap.servers"},
		{"the URL's user cannot log in so", "kafka://u:s3cret@h/t", "sasl.mechanism=OAUTHBEARER", nil,
			"--kafka-properties client.properties: sasl.mechanism is not supported", "PLAIN"},
		{"no file of properties", "kafka://h/t", "a=\\u00zz s3cret", nil, "--kafka-properties client.properties: is not a file of properties", "--command-config"},
	} {
		t.Run(c.why, func(t *testing.T) {
			_, err := with(t, c.url, c.text, c.env)
			var f *fault.Error
			if !errors.As(err, &f) || !strings.Contains(f.Error(), c.want) || !strings.Contains(f.Hint, c.hint) {
				t.Fatalf("got %v, hint %v", err, f)
			}
			if strings.Contains(f.Error()+f.Hint, "s3cret") {
				t.Errorf("shows the password: %v", f)
			}
		})
	}
}

func TestMissingPropertiesFile(t *testing.T) {
	_, _, err := places.Parse(t, "kafka://h/t").With(stores.Settings{Setting: "TENURE_KAFKA_PROPERTIES", File: "missing", Env: func(string) string { return "" }})
	if err == nil || !strings.HasPrefix(err.Error(), "TENURE_KAFKA_PROPERTIES missing: ") {
		t.Errorf("got %v", err)
	}
}

func TestOtherPlacesNeedNoProperties(t *testing.T) {
	place := places.Parse(t, "nats://h/E")
	if same, takes, err := place.With(stores.Settings{File: "missing"}); err != nil || takes || same != place {
		t.Errorf("got %v, %v", same, err)
	}
}
