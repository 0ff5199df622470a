package stores_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
	"github.com/tenure-go/tenure/cmd/tenure/internal/stores"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want stores.Place
		show string
	}{
		{"nats://host:4222/E", stores.Place{Servers: []string{"nats://host:4222"}, Bucket: "E"}, "nats://host:4222/E"},
		{"nats://host/E/", stores.Place{Servers: []string{"nats://host"}, Bucket: "E"}, "nats://host/E"},
		{"tls://host/MY_e-1", stores.Place{Servers: []string{"tls://host"}, Bucket: "MY_e-1"}, "tls://host/MY_e-1"},
		{"nats://[::1]:4222/E", stores.Place{Servers: []string{"nats://[::1]:4222"}, Bucket: "E"}, "nats://[::1]:4222/E"},
		{"nats://[::1]/E", stores.Place{Servers: []string{"nats://[::1]"}, Bucket: "E"}, "nats://[::1]/E"},
		{
			"nats://a:1,b:2/E", stores.Place{Servers: []string{"nats://a:1", "nats://b:2"}, Bucket: "E"},
			"nats://a:1,b:2/E",
		},
		{
			"nats://user:pa%2Fss%40word@host/E",
			stores.Place{Servers: []string{"nats://host"}, User: "user", Password: "pa/ss@word", Bucket: "E"}, "nats://***@host/E",
		},
		{
			"nats://s3cret@a,b/E",
			stores.Place{Servers: []string{"nats://a", "nats://b"}, Token: "s3cret", Bucket: "E"}, "nats://***@a,b/E",
		},
	} {
		t.Run(c.raw, func(t *testing.T) {
			got, err := stores.Parse("--store", c.raw)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Setting = "--store"
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("wrong fields: servers %q, bucket %q, user %q", got.Servers, got.Bucket, got.User)
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
		{"NATS2://host/E", "unknown scheme"},
		{"nats:host", "// is missing"},
		{"nats:///E", "names no host"},
		{"nats://s3cret@/E", "names no host"},
		{"nats://host:4222", "names no bucket"},
		{"nats://host:4222/", "names no bucket"},
		{"nats://host:0/E", "port"},
		{"nats://host:65536/E", "port"},
		{"nats://host:/E", "port"},
		{"nats://a,,b/E", "empty host"},
		{"nats://host:port/E", "not a valid URL"},
		{"nats://host/a/b", "nothing may follow"},
		{"nats://host/a.b", "letters, digits"},
		{"nats://host/E?x=1", "something follows"},
		{"nats://host/E#x", "something follows"},
		{"nats://user:s3/cret@host/E", "not a valid URL"},
		{"nats://user:12/s3cret@host/E", "/ before @"},
		{"nats://user:s3%zzcret@host/E", "not a valid URL"},
		{"nats://user:12?s3cret@host/E", "something follows"},
		{"nats://user:12#s3cret@host/E", "something follows"},
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
			if !strings.HasPrefix(err.Error(), "--store ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want --store and %q in it", err, c.want)
			}
			if strings.Contains(err.Error()+f.Hint, "cret") {
				t.Errorf("shows a part of the password: %v", err)
			}
		})
	}
}

func TestRedact(t *testing.T) {
	for raw, want := range map[string]string{
		"nats://host/E":              "nats://host/E",
		"nats://user:pass@host/E":    "nats://***@host/E",
		"nats://us@er:pa@ss@host/E":  "nats://***@host/E",
		"nats://user:p/a?s#s@host/E": "nats://***@host/E",
		"user:pass@host":             "***@host",
		"":                           "",
	} {
		if got := stores.Redact(raw); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
}

func TestNoWayOfPrintingAPlaceShowsCredentials(t *testing.T) {
	place, err := stores.Parse("--store", "nats://user:s3cret@host/E")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(verb, place); strings.Contains(got, "s3cret") || strings.Contains(got, "user") {
			t.Errorf("%s shows %s", verb, got)
		}
	}
	if got := place.NATS(); got != "nats --server nats://***@host" {
		t.Errorf("the nats command is %s", got)
	}
}
