package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tenure-go/tenure/driver"
)

var (
	// errMoved leaves the outcome of a write open: if it was applied, then in the new history.
	errMoved = errors.New("the cluster was restored, wiped or replaced while the request was under way")

	// ErrFull reports that the cluster has raised the alarm NOSPACE and refuses writes.
	ErrFull = errors.New("the database of the cluster is full (alarm NOSPACE), and no leader can renew: " +
		"compact it (etcdctl compact), defragment each member (etcdctl defrag), then run etcdctl alarm disarm")

	// ErrLearner reports that no endpoint is open but a learner, which answers no linearizable
	// request.
	ErrLearner = errors.New("the endpoint is a learner, which does not serve elections: " +
		"give the endpoints of voting members, or promote it (etcdctl member promote)")

	// ErrNoQuorum reports that the member that was asked has no leader, or that the cluster did not
	// agree in time: too few members reach each other.
	ErrNoQuorum = errors.New("the cluster has no leader, or did not agree in time: check that most members run and " +
		"reach each other (etcdctl endpoint status --cluster)")

	// ErrRefusedTLS reports that the server refused the certificate of this client.
	ErrRefusedTLS = errors.New("the server refuses the certificate of this client, or wants one: " +
		"give a certificate and its key that the server's trusted CA has signed and that is still valid")
)

// alert begins the text of an error of TLS that the server has sent.
const alert = "remote error: tls:"

// Reasons why the cluster denies a request. Each wraps driver.ErrDenied.
var (
	// ErrNoUser reports that the cluster wants authentication, and this client has no user.
	ErrNoUser = fmt.Errorf("%w: the cluster wants authentication: give a user and a password, or a certificate whose common name "+
		"is a user", driver.ErrDenied)
	// ErrLogin reports that the cluster knows no such user, or that the password is wrong.
	ErrLogin = fmt.Errorf("%w: the cluster refuses the user and password", driver.ErrDenied)

	errNoRight = fmt.Errorf("%w: grant a role of this user the right: etcdctl role grant-permission ROLE readwrite PREFIX --prefix "+
		"(to an observer: read)", driver.ErrDenied)
)

// known are errors of etcd with a meaning of their own here.
var known = []struct{ etcd, means error }{
	{rpctypes.ErrPermissionDenied, errNoRight},
	{rpctypes.ErrUserEmpty, ErrNoUser},
	{rpctypes.ErrAuthFailed, ErrLogin},
	{rpctypes.ErrNoSpace, ErrFull},
	{rpctypes.ErrGRPCNotSupportedForLearner, ErrLearner},
	{rpctypes.ErrNoLeader, ErrNoQuorum},
	{rpctypes.ErrTimeout, ErrNoQuorum},
	{rpctypes.ErrTimeoutDueToLeaderFail, ErrNoQuorum},
	{rpctypes.ErrTimeoutDueToConnectionLost, ErrNoQuorum},
}

// explain returns an error of the client library as the contract of package driver wants it. The
// context is that of the call.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	code, text := status.Code(err), err.Error()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case code == codes.DeadlineExceeded && ends(ctx): // the deadline came to the library first
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	case code == codes.DeadlineExceeded: // that of the server
		return fmt.Errorf("%w: %w", ErrNoQuorum, err)
	case code == codes.Canceled:
		return fmt.Errorf("%w: %w", context.Canceled, err)
	case strings.Contains(text, alert) && begins(text):
		return fmt.Errorf("%w: %w: %w", driver.ErrDenied, ErrRefusedTLS, err)
	case strings.Contains(text, "Error while dialing"):
		return fmt.Errorf("%w: %w", driver.ErrConnecting, err)
	}
	for _, k := range known { // the reason for the end of a watch is a text
		if strings.Contains(text, rpctypes.ErrorDesc(k.etcd)) {
			return fmt.Errorf("%w: %w", k.means, err)
		}
	}
	return err
}

// begins reports whether an error is of the beginning of a connection. On a connection that had
// begun, the server may have carried out the request before the error.
func begins(text string) bool {
	return strings.Contains(text, "error reading server preface") || strings.Contains(text, "authentication handshake failed")
}

// ends reports whether the deadline of a context is close.
func ends(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < 100*time.Millisecond
}
