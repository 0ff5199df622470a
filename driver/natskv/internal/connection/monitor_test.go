package connection

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
)

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
