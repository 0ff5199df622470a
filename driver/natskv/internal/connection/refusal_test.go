package connection

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

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
