package fenced

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// insist tries until another try cannot help, or the context ends: streams change their leaders.
func insist(ctx context.Context, try func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := try()
		if err == nil || !passing(err) {
			return err
		}
		if !sleep(ctx, pause) {
			return gaveUp(ctx, err)
		}
	}
}

// passing reports whether a later try may end differently after this error about the fence. The
// next try finds a write whose outcome is not known.
func passing(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) && api.Code >= http.StatusInternalServerError {
		return true
	}
	if moved := (*movedError)(nil); errors.As(err, &moved) {
		return true
	}
	for _, p := range []error{
		errBusy, errOffline, errLost, errRemoved, ErrUnknown, nats.ErrNoResponders, context.DeadlineExceeded,
	} {
		if errors.Is(err, p) {
			return true
		}
	}
	return false
}

// gaveUp returns why the context ended, with the last obstacle as text.
func gaveUp(ctx context.Context, err error) error {
	//nolint:errorlint // the errors that err wraps are about one attempt
	return fmt.Errorf("%w (at last: %v)", context.Cause(ctx), err)
}

// sleep returns false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
