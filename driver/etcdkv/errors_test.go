package etcdkv

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tenure-go/tenure/driver"
)

// TestOutcomes: only an error that shows that the request was certainly not carried out says so.
func TestOutcomes(t *testing.T) {
	unavailable := func(text string) error { return status.Error(codes.Unavailable, text) }
	for _, c := range []struct {
		why    string
		err    error
		denied bool
		is     error // nil: none of ours
	}{
		{"a right is missing", rpctypes.ErrGRPCPermissionDenied, true, errNoRight},
		{"no user", rpctypes.ErrGRPCUserEmpty, true, ErrNoUser},
		{"a wrong password, as the client library returns it", rpctypes.ErrAuthFailed, true, ErrLogin},
		{"the reason for the end of a watch", errors.New("the server ends the watch: etcdserver: permission denied"), true, errNoRight},
		{"refused in the handshake", unavailable(`connection error: desc = "transport: authentication handshake failed: remote error: tls: bad certificate"`), true, ErrRefusedTLS},
		{"refused after the handshake", unavailable(`connection error: desc = "error reading server preface: remote error: tls: certificate required"`), true, ErrRefusedTLS},
		{"an alert on a connection that worked", unavailable("error reading from server: remote error: tls: internal error"), false, nil},
		{"the connection is lost", unavailable("error reading from server: EOF"), false, nil},
		{"no connection", unavailable(`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:9: connect: connection refused"`), false, driver.ErrConnecting},
		{"full", rpctypes.ErrGRPCNoSpace, false, ErrFull},
		{"learner", rpctypes.ErrGRPCNotSupportedForLearner, false, ErrLearner},
		{"no quorum", rpctypes.ErrGRPCTimeout, false, ErrNoQuorum},
		{"the server gave up", status.Error(codes.DeadlineExceeded, "context deadline exceeded"), false, ErrNoQuorum},
	} {
		got := explain(t.Context(), c.err)
		if errors.Is(got, driver.ErrDenied) != c.denied || errors.Is(got, driver.ErrConflict) || c.is != nil && !errors.Is(got, c.is) {
			t.Errorf("%s: got %v", c.why, got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if got := explain(ctx, status.Error(codes.DeadlineExceeded, "x")); !errors.Is(got, context.DeadlineExceeded) {
		t.Errorf("at the deadline of the call: %v", got)
	}
}
