package stores

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
)

// networkOperations are those of a net.OpError that mean trouble on the way to a server. The other
// operations come from TLS: the server refuses the client.
var networkOperations = []string{"dial", "read", "write"}

// away reports whether a client did not reach its server, which may be reachable later.
func away(err error) bool {
	var (
		op      *net.OpError
		name    *net.DNSError
		timeout net.Error
	)
	switch {
	case errors.As(err, &op):
		return slices.Contains(networkOperations, op.Op)
	case errors.As(err, &name), errors.As(err, &timeout) && timeout.Timeout():
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
