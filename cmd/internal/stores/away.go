package stores

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
)

// dealings are the operations of the network for a client. Other operations in its errors are those
// of TLS, where the other end refuses.
var dealings = []string{"dial", "read", "write"}

// away reports whether a client did not get through to its server, which may be there later.
func away(err error) bool {
	var (
		op      *net.OpError
		name    *net.DNSError
		timeout net.Error
	)
	switch {
	case errors.As(err, &op):
		return slices.Contains(dealings, op.Op)
	case errors.As(err, &name), errors.As(err, &timeout) && timeout.Timeout():
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
