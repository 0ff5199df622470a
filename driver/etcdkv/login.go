package etcdkv

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// WithPassword returns an option for the DialOptions of a configuration with a user: each login
// sends the password that current returns, instead of the Password of the configuration, which must
// not be empty. Use it where passwords are replaced while programs run. The client library logs in
// when a Store is opened, for each new stream, and when the cluster has ended the last login: 5
// minutes after its last use, and when the password of the user is replaced. The function may be
// called from many goroutines.
func WithPassword(current func(context.Context) string) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if login, ok := request.(*pb.AuthenticateRequest); ok {
			request = &pb.AuthenticateRequest{Name: login.Name, Password: current(ctx)}
		}
		return invoke(ctx, method, request, reply, cc, opts...)
	})
}
