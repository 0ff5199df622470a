package connection

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

func TestAPIPrefix(t *testing.T) {
	for _, c := range []struct {
		options jetstream.JetStreamOptions
		want    string
	}{
		{jetstream.JetStreamOptions{}, "$JS.API."},
		{jetstream.JetStreamOptions{Domain: "hub"}, "$JS.hub.API."},
		{jetstream.JetStreamOptions{APIPrefix: "js.from.other"}, "js.from.other."},
		{jetstream.JetStreamOptions{APIPrefix: "js.from.other."}, "js.from.other."},
	} {
		if got := apiPrefix(c.options); got != c.want {
			t.Errorf("%+v: %s; want %s", c.options, got, c.want)
		}
	}
}
