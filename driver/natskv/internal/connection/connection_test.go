package connection

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
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

// If a client is not admitted again, the error has the server's reason. The text does not decide
// the kind of the error.
func TestOfflineQuotesTheServer(t *testing.T) {
	last := nats.ErrAuthorization
	err := offline(nats.RECONNECTING, last)
	if !errors.Is(err, ErrOffline) || errors.Is(err, last) || !strings.Contains(err.Error(), last.Error()) {
		t.Errorf("got %v", err)
	}
	if err := offline(nats.RECONNECTING, nil); !errors.Is(err, ErrOffline) || !errors.Is(err, driver.ErrConnecting) {
		t.Errorf("got %v", err)
	}
}
