package connection

import (
	"crypto/tls"
	"errors"
	"fmt"
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

// TestOldRefusal: the connection remembers a refusal from before the right was granted.
func TestOldRefusal(t *testing.T) {
	old := fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "$KV.B.billing")
	again := fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "$KV.B.billing")
	longer := fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "$KV.B.billing.eu")
	r := &requestMonitor{nc: &nats.Conn{}, before: old, write: true, subjects: []string{"$KV.B.billing"}}
	for _, c := range []struct {
		err  error
		want bool
		why  string
	}{
		{nil, false, "nothing happened"},
		{old, false, "it was there before the request"},
		{again, true, "it came after the request"},
		{longer, false, "it is about another key"},
		{errors.New(again.Error()), false, "it is no refusal"},
	} {
		if got := r.refused(c.err) != nil; got != c.want {
			t.Errorf("%v: refused %v; want %v: %s", c.err, got, c.want, c.why)
		}
	}
}

// TestWriteMayHaveBeenSent: a connection that ends because its user has expired may have sent the
// write before. So may one that broke between the check and the request, when the library's error
// speaks of a buffer.
func TestWriteMayHaveBeenSent(t *testing.T) {
	for write, want := range map[bool]bool{true: false, false: true} {
		r := &requestMonitor{write: write, ctx: t.Context()}
		if err := r.unsent(closed(nats.ErrAuthExpired)); err == nil || errors.Is(err, driver.ErrDenied) != want {
			t.Errorf("write %v: %v; want denied %v", write, err, want)
		}
		if err := r.explain(nats.ErrReconnectBufExceeded); errors.Is(err, driver.ErrConnecting) != want {
			t.Errorf("write %v: %v; want not sent %v", write, err, want)
		}
	}
}

// TestReconnected: a connection may be back before a check, and bring an answer. That answer may
// come from another server, even of another cluster.
func TestReconnected(t *testing.T) {
	nc := natsnet.Connect(t, natsnet.Play(t, nil))
	r := &requestMonitor{nc: nc, number: nc.Stats().Reconnects}
	for _, c := range []struct {
		when string
		look func() error
	}{
		{"while the request waits", r.reason},
		{"after the answer", func() error { return r.afterAnswer(nil) }},
	} {
		if err := c.look(); err != nil {
			t.Errorf("%s, with the connection of the request: %v", c.when, err)
		}
		r.number++
		if err := c.look(); !errors.Is(err, ErrLost) {
			t.Errorf("%s, with another connection than that of the request: %v; want an error that it was lost", c.when, err)
		}
		r.number--
	}
}

// TestExpiredUser: a server ends the connection of a user that it no longer knows.
func TestExpiredUser(t *testing.T) {
	for _, c := range []struct {
		last   error
		denied bool
	}{
		{nats.ErrAuthorization, true},
		{nats.ErrAuthExpired, true},
		{nats.ErrAuthRevoked, true},
		{nats.ErrAccountAuthExpired, true},
		{nats.ErrStaleConnection, false},
		{nil, false},
	} {
		if err := closed(c.last); err == nil || errors.Is(err, driver.ErrDenied) != c.denied {
			t.Errorf("a connection closed with %v: %v; want denied %v", c.last, err, c.denied)
		}
	}
}
