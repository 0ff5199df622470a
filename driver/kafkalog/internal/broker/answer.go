package broker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kerr"
)

// ErrAnswer reports that a broker violates the protocol.
var ErrAnswer = errors.New("the broker answered something else than it was asked")

// refusals are the answers that mean that a right is missing. A broker gives them before it does
// anything.
var refusals = []*kerr.Error{
	kerr.TopicAuthorizationFailed,
	kerr.GroupAuthorizationFailed,
	kerr.TransactionalIDAuthorizationFailed,
	kerr.ClusterAuthorizationFailed,
	kerr.SaslAuthenticationFailed,
	kerr.UnsupportedSaslMechanism,
	kerr.IllegalSaslState,
}

// IsAny reports whether an error is one of several.
func IsAny[E error](err error, of []E) bool {
	return slices.ContainsFunc(of, func(e E) bool { return errors.Is(err, e) })
}

// IsRefusal reports whether an error is an answer that an operator must act on, by granting a right
// or a log-in.
func IsRefusal(err error) bool { return IsAny(err, refusals) }

// Denied adds driver.ErrDenied to errors that mean it.
func Denied(err error) error {
	if IsRefusal(err) && !errors.Is(err, driver.ErrDenied) {
		return fmt.Errorf("%w (%w)", driver.ErrDenied, err)
	}
	return err
}
