package stores_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

func TestParseKafka(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want stores.Kafka
		show string
	}{
		{"kafka://host/topic", stores.Kafka{Brokers: []string{"host"}, Topic: "topic"}, ""},
		{"kafka://a:1,b,[::1]:2/my.to_p-ic/", stores.Kafka{Brokers: []string{"a:1", "b", "[::1]:2"}, Topic: "my.to_p-ic"}, "kafka://a:1,b,[::1]:2/my.to_p-ic"},
		{"kafka:///topic", stores.Kafka{Topic: "topic"}, ""},
		{
			"kafka://user:pa%2Fss%40@h/t?mode=log",
			stores.Kafka{Brokers: []string{"h"}, User: "user", Password: "pa/ss@", Topic: "t"}, "kafka://***@h/t",
		},
		{"kafka://us@er:pass@h/t", stores.Kafka{Brokers: []string{"h"}, User: "us@er", Password: "pass", Topic: "t"}, "kafka://***@h/t"},
		{"kafka://h/t?mode=neli", stores.Kafka{Brokers: []string{"h"}, Topic: "t", NELI: &stores.NELI{}}, ""},
		{
			"kafka://h/t?timeout=500ms&session=6s&without-goneli=true&nominee-only=true&group-topic=T&group=g&mode=neli&replicas=2",
			stores.Kafka{
				Brokers: []string{"h"}, Topic: "t", Replicas: 2, Timeout: 500 * time.Millisecond,
				NELI: &stores.NELI{Group: "g", Topic: "T", NomineeOnly: true, WithoutGoNELI: true, Session: 6 * time.Second},
			},
			"kafka://h/t?mode=neli&group=g&group-topic=T&nominee-only=true&without-goneli=true&session=6s&replicas=2&timeout=500ms",
		},
	} {
		t.Run(c.raw, func(t *testing.T) {
			got, err := stores.Parse("--store", c.raw)
			if err != nil {
				t.Fatal(err)
			}
			if got.Setting != "--store" || got.NATS != nil || !got.Pushes() || !reflect.DeepEqual(*got.Kafka, c.want) {
				t.Errorf("got %v", got)
			}
			if c.show == "" {
				c.show = c.raw
			}
			if got.String() != c.show {
				t.Errorf("shown as %s, want %s", got, c.show)
			}
		})
	}
}

func TestParseKafkaRefusesWithAHintAndWithoutCredentials(t *testing.T) {
	for _, c := range []struct{ raw, want, hint string }{
		{"kafka:host", "// is missing", "kafka://host"},
		{"kafka://", "names no topic", "kafka://host"},
		{"kafka://host", "names no topic", "kafka://host"},
		{"kafka://host/", "names no topic", "kafka://host"},
		{"kafka://host/a/b", "the name of a topic may have only", "kafka://host"},
		{"kafka://host/..", "the name of a topic may have only", "kafka://host"},
		{"kafka://host/" + strings.Repeat("t", 250), "the name of a topic may have only", "kafka://host"},
		{"kafka://host:0/t", "port", "kafka://host"},
		{"kafka://a,,b/t", "a host is empty", "kafka://host"},
		{"kafka://a:port/t", "port", "kafka://host"},
		{"kafka://host/t#", "behind #", "%23"},
		{"kafka://host/t%zz", "not a valid URL", "kafka://host"},
		{"kafka://s3cret@host/t", "no user or no password", "user:password@"},
		{"kafka://:s3cret@host/t", "no user or no password", "user:password@"},
		{"kafka://user:s3/cret@host/t", "before @", "%2F"},
		{"kafka://user:s3?cret@host/t", "before @", "%3F"},
		{"kafka://user:s3%zzcret@host/t", "not a valid URL", "%XX"},
		{"kafka://host/t?mod=neli", `"mod" is unknown`, "known are mode, group"},
		{"kafka://host/t?s3cret", "an unknown parameter has no value", "known are"},
		{"kafka://host/t?password=s3cret", "is unknown", "--kafka-properties"},
		{"kafka://host/t?security.protocol=SSL", "is unknown", "TENURE_KAFKA_SECURITY_PROTOCOL"},
		{"kafka://host/t?mode=neli&mode=log", "given twice", "leave out"},
		{"kafka://host/t?mode=strict", "mode must be log or neli", "mode=neli"},
		{"kafka://host/t?mode=", "mode is empty", "mode=neli"},
		{"kafka://host/t?group=g", "needs mode=neli", "mode=neli"},
		{"kafka://host/t?mode=log&session=6s", "needs mode=neli", "mode=neli"},
		{"kafka://host/t?mode=neli&group=a%20b", "group may have only letters", "mode=neli"},
		{"kafka://host/t?mode=neli&session=15", "session must be a time", "session=15s"},
		{"kafka://host/t?mode=neli&session=1ms", "session must be a time from 1s", "session=15s"},
		{"kafka://host/t?mode=neli&nominee-only=1.5", "nominee-only must be true or false", "mode=neli"},
		{"kafka://host/t?timeout=100ms", "timeout must be a time from 200ms to 1m", "kafka://"},
		{"kafka://host/t?replicas=0", "replicas must be a whole number from 1 to 32767", "kafka://"},
		{"kafka://host/t?replicas=99999", "replicas must be a whole number from 1 to 32767", "kafka://"},
		{"kafka://host/t?group=%zz", "cannot be read", "%26"},
		{"kafka-embedded:?mode=neli", "inside tenure-demo", "tenure-demo"},
	} {
		t.Run(c.raw, func(t *testing.T) {
			_, err := stores.Parse("--store", c.raw)
			var f *fault.Error
			if !errors.As(err, &f) {
				t.Fatalf("got %v", err)
			}
			if !strings.HasPrefix(f.Error(), "--store") || !strings.Contains(f.Error(), c.want) || !strings.Contains(f.Hint, c.hint) {
				t.Errorf("got error %q and hint %q", f.Error(), f.Hint)
			}
			if strings.Contains(f.Error()+f.Hint, "cret") {
				t.Errorf("shows a secret: %v", f)
			}
		})
	}
}

func TestParseEmbeddedKafka(t *testing.T) {
	k, err := stores.ParseEmbeddedKafka("--store", "kafka-embedded:?mode=neli&group=g", "topic")
	if err != nil || k.Topic != "topic" || k.NELI.Group != "g" {
		t.Errorf("got %v, %v", k, err)
	}
	for raw, want := range map[string]string{
		"kafka-embedded://host/t": "inside tenure-demo", "kafka-embedded:x": "inside tenure-demo", "kafka-embedded:?group=g": "needs mode=neli",
	} {
		if _, err := stores.ParseEmbeddedKafka("--store", raw, "topic"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

// A candidate process gets all settings of its demo. Printed text shows none of the credentials.
func TestKafkaPlaceHidesCredentials(t *testing.T) {
	place, err := stores.Parse("--store", "kafka://user:s3cret@h:1,i/t")
	if err != nil {
		t.Fatal(err)
	}
	place.Kafka.Properties = map[string]string{"sasl.password": "s3cret"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(verb+verb+verb, place, &place, place.Kafka); strings.Contains(got, "s3cret") || strings.Contains(got, "user") {
			t.Errorf("%s shows %s", verb, got)
		}
	}
	want := "kafka-console-consumer.sh --bootstrap-server h:1,i:9092 --command-config client.properties --topic t --partition 0 " +
		"--offset earliest --formatter-property print.headers=true --formatter-property print.offset=true"
	if got := place.Commands("k"); got.Look != want || got.Delete != "" {
		t.Errorf("the commands are %+v", got)
	}
	text, err := json.Marshal(place)
	if err != nil {
		t.Fatal(err)
	}
	var same stores.Place
	if err := json.Unmarshal(text, &same); err != nil || !reflect.DeepEqual(same.Kafka, place.Kafka) {
		t.Errorf("a candidate gets %s", text)
	}
}
