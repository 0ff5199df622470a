// Package places holds what tests of the kinds of stores share.
package places

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Unreachable is an address without a listener. The port is never assigned.
const Unreachable = "127.0.0.1:1"

// Parse parses the value of --store.
func Parse(t *testing.T, url string) stores.Place {
	t.Helper()
	p, err := stores.Parse("--store", url)
	must.OK(t, err)
	return p
}

// Enter opens a place and reads a record there. It tries until it succeeds, fails with the wanted
// error, or fails with a permanent error: on a slow machine a server may answer too late. The store
// stays open until the test ends.
func Enter(t *testing.T, p stores.Place, create bool, want string) (*stores.Store, error) {
	t.Helper()
	for ctx := wait.Context(t); ; {
		s, err := Visit(ctx, t, p, create)
		if err == nil || !fault.Passes(err) || want != "" && strings.Contains(err.Error(), want) || ctx.Err() != nil {
			return s, err
		}
	}
}

// Visit is one attempt of Enter.
func Visit(ctx context.Context, t *testing.T, p stores.Place, create bool) (*stores.Store, error) {
	t.Helper()
	s, err := stores.Open(ctx, p, stores.Options{Client: "a test", Create: create, Lease: 2 * time.Second})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, s.Check(ctx, "key")
}

// Says checks that an error of --store has a text and a hint, and no secret.
func Says(t *testing.T, err error, want, hint string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v", err)
	}
	if !strings.HasPrefix(f.Error(), "--store ") || !strings.Contains(f.Error(), want) || !strings.Contains(f.Hint, hint) {
		t.Errorf("got error %q and hint %q", f.Error(), f.Hint)
	}
	if strings.Contains(f.Error()+f.Hint, "s3cret") {
		t.Errorf("shows the password: %v", f)
	}
}

// Permanent checks that Connect returns an error of each place, and does not wait for it to pass.
func Permanent(t *testing.T, urls ...string) {
	t.Helper()
	for _, url := range urls {
		ctx, cancel := context.WithCancel(wait.Context(t))
		var failures []error
		_, err := stores.Connect(ctx, Parse(t, url), "key", stores.Options{}, stores.Patience{
			Limit: stores.Forever, Told: func(err error) {
				// On a slow machine an attempt may take too long.
				if failures = append(failures, err); len(failures) == 20 {
					cancel()
				}
			},
		})
		if cancel(); err == nil || fault.Passes(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, after these failures: %v", stores.Redact(url), err, failures)
		}
	}
}
