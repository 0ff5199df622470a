package connection

import (
	"crypto/tls"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
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

// TestOwnKeepsThePrefix: the requests of an own connection use the prefix of the given context.
func TestOwnKeepsThePrefix(t *testing.T) {
	nc := natsnet.Connect(t, server(t, 0))
	for _, make := range []func() (jetstream.JetStream, error){
		func() (jetstream.JetStream, error) { return jetstream.NewWithDomain(nc, "hub") },
		func() (jetstream.JetStream, error) { return jetstream.NewWithAPIPrefix(nc, "$JS.hub.API") },
	} {
		js, err := make()
		if err != nil {
			t.Fatal(err)
		}
		c, err := Own(js, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if got := c.API(); got != "$JS.hub.API." {
			t.Errorf("asks on %s", got)
		}
	}
}

// TestSettings: the own connection keeps the options for the servers and the user. It does not keep
// the handlers, because they would get events of a connection that the program does not know.
func TestSettings(t *testing.T) {
	handler := func(*nats.Conn) {}
	of := nats.GetDefaultOptions()
	for _, set := range []nats.Option{
		nats.Name("billing"), nats.UserInfo("user", "x"), nats.CustomInboxPrefix("_MINE"), nats.Timeout(7 * time.Second),
		nats.Secure(&tls.Config{ServerName: "store", MinVersion: tls.VersionTLS13}), nats.DontRandomize(),
		nats.ClosedHandler(handler), nats.ConnectHandler(handler), nats.ReconnectHandler(handler), nats.LameDuckModeHandler(handler),
		nats.DiscoveredServersHandler(handler), nats.DisconnectErrHandler(func(*nats.Conn, error) {}),
		nats.DisconnectHandler(handler), nats.ReconnectErrHandler(func(*nats.Conn, error) {}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.RetryOnFailedConnect(true), nats.NoReconnect(),
		nats.UserJWT(func() (string, error) { return "", nil }, func([]byte) ([]byte, error) { return nil, nil }),
	} {
		if err := set(&of); err != nil {
			t.Fatal(err)
		}
	}
	of.Servers = []string{"nats://a:4222", "nats://b:4222"}
	got, err := settings(of, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "billing (elections)" || got.PingInterval != time.Second || got.MaxPingsOut != 2 || got.ReconnectBufSize != -1 ||
		!got.AllowReconnect || got.MaxReconnect != -1 || got.RetryOnFailedConnect || !got.IgnoreAuthErrorAbort {
		t.Errorf("made %+v", got)
	}
	changed := []string{
		"Name", "PingInterval", "MaxPingsOut", "ReconnectBufSize", "AllowReconnect", "MaxReconnect", "RetryOnFailedConnect",
		"IgnoreAuthErrorAbort", "CustomReconnectDelayCB", "FlusherTimeout", "ReconnectOnFlusherError", "NoCallbacksAfterClientClose",
	}
	deaf := []string{
		"ClosedCB", "DisconnectedCB", "DisconnectedErrCB", "ConnectedCB", "ReconnectedCB", "DiscoveredServersCB", "AsyncErrorCB",
		"ReconnectErrCB", "LameDuckModeHandler",
	}
	was, is := reflect.ValueOf(of), reflect.ValueOf(got)
	for _, name := range deaf {
		if was.FieldByName(name).IsNil() || !is.FieldByName(name).IsNil() {
			t.Errorf("%s was copied, or not tried", name)
		}
	}
	for i := range was.NumField() {
		name, kind := was.Type().Field(i).Name, was.Field(i).Kind()
		switch {
		case slices.Contains(changed, name), slices.Contains(deaf, name):
		case kind == reflect.Func:
			if was.Field(i).Pointer() != is.Field(i).Pointer() {
				t.Errorf("%s was changed", name)
			}
		case !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()):
			t.Errorf("%s is %v; want %v", name, is.Field(i), was.Field(i))
		}
	}
}
