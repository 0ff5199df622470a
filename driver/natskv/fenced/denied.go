package fenced

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// denialPause is the time between two checks whether a request was refused. It is so long that most
// answers come before the first check.
const denialPause = 20 * time.Millisecond

// watchRefusal calls found with the reason if the server refuses a request because a right is
// missing, or if the connection is lost. The server reports that to the connection and not to the
// request. Stop must be called.
func (w wire) watchRefusal(subject string, found context.CancelCauseFunc) (stop func()) {
	nc, names := w.nc, w.names(subject)
	before, connects, over := nc.LastError(), nc.Stats().Reconnects, make(chan struct{})
	timer := time.AfterFunc(denialPause, func() {
		for {
			if name := refused(nc.LastError(), before, names); name != "" {
				found(fmt.Errorf("%w: the user may not publish to %s: grant publish on it", driver.ErrDenied, name))
				return
			}
			if nc.Stats().Reconnects != connects {
				found(errLost)
				return
			}
			select {
			case <-over:
				return
			case <-time.After(denialPause):
			}
		}
	})
	return func() {
		close(over)
		timer.Stop()
	}
}

// names returns the names under which a server may check the rights to a subject: a server in a
// JetStream domain removes the domain first.
func (w wire) names(subject string) []string {
	if bare, ours := strings.CutPrefix(subject, w.api); ours && w.api != jetstream.DefaultAPIPrefix {
		return []string{subject, jetstream.DefaultAPIPrefix + bare}
	}
	return []string{subject}
}

// refused returns the subject to which a publish was refused by an error that was not there before;
// empty if there is none.
func refused(err, before error, subjects []string) string {
	same := err == before //nolint:errorlint // the same event, not one of its kind
	if same || !errors.Is(err, nats.ErrPermissionViolation) {
		return ""
	}
	for _, subject := range subjects {
		if strings.Contains(err.Error(), fmt.Sprintf("Publish to %q", subject)) {
			return subject
		}
	}
	return ""
}
