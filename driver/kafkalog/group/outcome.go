package group

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
)

// faults are the errors that waiting does not repair.
var faults = []*kerr.Error{
	kerr.InconsistentGroupProtocol,
	kerr.InvalidSessionTimeout,
	kerr.InvalidGroupID,
	kerr.GroupMaxSizeReached,
	kerr.FencedInstanceID,
	kerr.UnsupportedVersion,
}

// hopeless reports whether an operator must act before the group can be joined.
func hopeless(err error) bool { return broker.IsRefusal(err) || broker.IsAny(err, faults) }

// remedy adds the remedy to an answer of the coordinator, and driver.ErrDenied where that applies.
func remedy(c Config, err error) error {
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		err = fmt.Errorf("grant Read on the group %s: %w", c.Name, err)
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		err = fmt.Errorf("group %s has members of another kind, such as ordinary consumers or goNELI's: stop them, or take another group: %w", c.Name, err)
	case errors.Is(err, kerr.InvalidSessionTimeout):
		err = fmt.Errorf("a SessionTimeout of %v is not between group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers, "+
			"which are 6 s and 30 min unless they are set: %w", c.SessionTimeout, err)
	case errors.Is(err, kerr.FencedInstanceID):
		err = fmt.Errorf("another process has joined group %s as instance %s, and this one is out for good: give each its own name: %w", c.Name, c.Instance, err)
	}
	return broker.Denied(err)
}
