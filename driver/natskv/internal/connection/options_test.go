package connection

import (
	"crypto/tls"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

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
