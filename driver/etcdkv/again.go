package etcdkv

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// again sends a request, and sends it once more if the server refused it before it looked at it:
//
//   - The login of this client had ended. By then the client library has logged in again.
//   - The endpoint is a learner. The library sends the next request to the next endpoint.
func again[Q, A any](
	ctx context.Context, s *Store, send func(context.Context, Q, ...grpc.CallOption) (A, error), request Q,
) (answer A, err error) {
	login := true
	for others := len(s.client.Endpoints()) - 1; ; {
		answer, err = send(ctx, request)
		switch ended := rpctypes.Error(err); {
		case login && (errors.Is(ended, rpctypes.ErrInvalidAuthToken) || errors.Is(ended, rpctypes.ErrAuthOldRevision)):
			login = false
		case others > 0 && byLearner(err):
			others--
		default:
			return answer, err
		}
	}
}

// byLearner reports whether a learner refused a request because it is one.
func byLearner(err error) bool {
	return rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner)
}
