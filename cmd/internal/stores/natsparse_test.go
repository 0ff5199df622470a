package stores_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

func TestParseNATS(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want stores.NATS
		show string
	}{
		{"nats://host:4222/E", stores.NATS{Servers: []string{"nats://host:4222"}, Bucket: "E"}, "nats://host:4222/E"},
		{
			"nats://host/E?migrating=true", stores.NATS{Servers: []string{"nats://host"}, Bucket: "E", Migrating: true},
			"nats://host/E?migrating=true",
		},
		{
			"nats://host/E?pristine=true&migrating=true",
			stores.NATS{Servers: []string{"nats://host"}, Bucket: "E", Migrating: true, Pristine: true},
			"nats://host/E?migrating=true",
		},
		{"nats://host/E/", stores.NATS{Servers: []string{"nats://host"}, Bucket: "E"}, "nats://host/E"},
		{"tls://host/MY_e-1", stores.NATS{Servers: []string{"tls://host"}, Bucket: "MY_e-1"}, "tls://host/MY_e-1"},
		{"nats://[::1]:4222/E", stores.NATS{Servers: []string{"nats://[::1]:4222"}, Bucket: "E"}, "nats://[::1]:4222/E"},
		{"nats://[::1]/E", stores.NATS{Servers: []string{"nats://[::1]"}, Bucket: "E"}, "nats://[::1]/E"},
		{
			"nats://a:1,b:2/E", stores.NATS{Servers: []string{"nats://a:1", "nats://b:2"}, Bucket: "E"},
			"nats://a:1,b:2/E",
		},
		{
			"nats://user:pa%2Fss%40word@host/E",
			stores.NATS{Servers: []string{"nats://host"}, User: "user", Password: "pa/ss@word", Bucket: "E"}, "nats://***@host/E",
		},
		{
			"nats://s3cret@a,b/E",
			stores.NATS{Servers: []string{"nats://a", "nats://b"}, Token: "s3cret", Bucket: "E"}, "nats://***@a,b/E",
		},
	} {
		t.Run(c.raw, func(t *testing.T) {
			got, err := stores.Parse("--store", c.raw)
			if err != nil {
				t.Fatal(err)
			}
			if got.Setting != "--store" || got.S3 != nil || !reflect.DeepEqual(*got.NATS, c.want) {
				t.Errorf("wrong fields: servers %q, bucket %q, user %q", got.NATS.Servers, got.NATS.Bucket, got.NATS.User)
			}
			if got.String() != c.show {
				t.Errorf("shown as %s, want %s", got, c.show)
			}
		})
	}
}

func TestParseRefusesWithAHintAndWithoutCredentials(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"", "is not a URL"},
		{"host", "is not a URL"},
		{"memory:", "inside one process"},
		{"memory://x", "inside one process"},
		{"redis://s3cret@host/E", "unknown scheme"},
		{"s3-embedded:x", "inside tenure-demo"},
		{"NATS2://host/E", "unknown scheme"},
		{"nats:host", "// is missing"},
		{"nats:///E", "names no host"},
		{"nats://s3cret@/E", "names no host"},
		{"nats://host:4222", "names no bucket"},
		{"nats://host:4222/", "names no bucket"},
		{"nats://host:0/E", "port"},
		{"nats://host:65536/E", "port"},
		{"nats://host:/E", "port"},
		{"nats://a,,b/E", "a host is empty"},
		{"nats://host:port/E", "not a valid URL"},
		{"nats://host/a/b", "no / may follow"},
		{"nats://host/a.b", "letters, digits"},
		{"nats://host/E?x=1", "may follow the bucket"},
		{"nats://host/E?migrating=1", "may follow the bucket"},
		{"nats://host/E#x", "may follow the bucket"},
		{"nats://user:s3/cret@host/E", "not a valid URL"},
		{"nats://user:12/s3cret@host/E", "/ before @"},
		{"nats://user:s3%zzcret@host/E", "not a valid URL"},
		{"nats://user:12?s3cret@host/E", "may follow the bucket"},
		{"nats://user:12#s3cret@host/E", "may follow the bucket"},
	} {
		t.Run(c.raw, func(t *testing.T) {
			_, err := stores.Parse("--store", c.raw)
			if err == nil {
				t.Fatal("accepted")
			}
			var f *fault.Error
			if !errors.As(err, &f) || f.Hint == "" {
				t.Errorf("no hint: %v", err)
			}
			if !strings.HasPrefix(err.Error(), "--store") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want --store and %q in it", err, c.want)
			}
			if strings.Contains(err.Error()+f.Hint, "cret") {
				t.Errorf("shows a part of the password: %v", err)
			}
		})
	}
}

func TestPrintedPlacesHideCredentials(t *testing.T) {
	place, err := stores.Parse("--store", "nats://user:s3cret@host/E")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(verb+verb+verb, place, &place, place.NATS); strings.Contains(got, "s3cret") || strings.Contains(got, "user") {
			t.Errorf("%s shows %s", verb, got)
		}
	}
	if got := place.Commands("k").Look; got != "nats --server nats://***@host kv get E k" {
		t.Errorf("the nats command is %s", got)
	}
}
