package fenced

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

// denialPause is how often it is looked whether a request was refused. Its answer is there before the first time.
const denialPause = 20 * time.Millisecond

// lookOut ends a request that the server has refused for want of rights, which it tells the connection and not the
// request. Stop must be called.
func lookOut(nc *nats.Conn, subject string, found context.CancelCauseFunc) (stop func()) {
	before, connects, over := nc.LastError(), nc.Stats().Reconnects, make(chan struct{})
	timer := time.AfterFunc(denialPause, func() {
		for {
			if err := nc.LastError(); refuses(err, before, subject) {
				found(fmt.Errorf("%w: the user may not publish to %s: grant publish on it", driver.ErrDenied, subject))
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

// refuses says whether an error that was not there before is the refusal of a publish on the subject.
func refuses(err, before error, subject string) bool {
	return err != before && //nolint:errorlint // the same event, not one of its kind
		errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), fmt.Sprintf("Publish to %q", subject))
}
