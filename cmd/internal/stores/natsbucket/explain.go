package natsbucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/mixed"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// explainConnect returns the error and the hint for a failed connection.
func explainConnect(err error) *fault.Error {
	var broken *contextError
	if errors.As(err, &broken) {
		f := fault.New(contexts(), "%w", err)
		f.Code = fault.Usage // no server was called
		return f
	}
	f := fault.New(connectHint(err), "cannot connect: %w", withoutURL(err))
	f.Passing = kind.Away(err) || errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || isFull(err)
	return f
}

// withoutURL removes the URL from an error, since the URL of a context may hold credentials, and
// the name of a file that is none.
func withoutURL(err error) error {
	var u *url.Error
	var file *fs.PathError
	switch {
	case errors.As(err, &u):
		return errors.New("the context's URL is not valid")
	case errors.Is(err, nats.ErrNoServers):
		return errors.New("no server answers")
	case errors.As(err, &file):
		return errors.New(shownFile(err))
	}
	return err
}

// isFull reports whether the server has reached its limit of connections.
func isFull(err error) bool {
	text := err.Error() // the library has no error value for it
	return strings.Contains(text, "maximum connections exceeded") || strings.Contains(text, "maximum account active connections exceeded")
}

func connectHint(err error) string {
	var (
		authority x509.UnknownAuthorityError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return "give a user and a password, nats://user:password@host:4222/BUCKET, or a context of the nats command with --context"
	case isFull(err):
		return "raise max_connections in the configuration of the server or the account, or end other clients"
	case errors.As(err, &authority):
		return "make a context with the server's CA (nats context add NAME --tlsca FILE) and give it with --context"
	case errors.Is(err, nats.ErrSecureConnWanted), errors.As(err, &record):
		return "the server has no TLS: give nats:// instead of tls://, or put tls {} into its configuration"
	}
	return "check the host and the port, and that the server runs"
}

func contexts() string {
	known := Contexts()
	if len(known) == 0 {
		return "make a context with: nats context add NAME --server nats://host:4222"
	}
	return "known contexts: " + strings.Join(known, ", ")
}

// Explain returns the error and the hint for a bucket that cannot be used.
func (n *Place) Explain(err error) *fault.Error {
	switch {
	case errors.Is(err, jetstream.ErrBucketNotFound):
		return fault.New(kind.MadeBy(fmt.Sprintf("%s kv add %s --history 1 --storage file", n.command(), n.Bucket)),
			"there is no bucket %s", n.Bucket)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return fault.New("start the server with -js or put jetstream {} into its configuration", "the server has no JetStream")
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fault.New("put jetstream: enabled into the account's configuration", "the account has no JetStream")
	case errors.Is(err, driver.ErrDenied): // the error names the right
		return fault.New("grant it in the server's configuration, or give other credentials; "+
			"the documentation of driver/natskv lists all rights that a candidate needs", "%w", err)
	case errors.Is(err, natskv.ErrTwoClusters):
		return fault.New("give the servers of one cluster only, to all candidates the same; "+
			"if the bucket that is there now is the right one, start this process again", "%w", err)
	case errors.Is(err, mixed.ErrUnshareable):
		return fault.New("leave out ?"+migrating+", or name the bucket of the old candidates", "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Passing("check that the cluster has a leader: "+n.command()+" server report jetstream", "%w", err)
	}
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == insufficientResources {
		return fault.New("give the account or the server more storage, see: "+n.command()+" account info",
			"there is no room for bucket %s: %w", n.Bucket, err)
	}
	f := fault.New("", "%w", err) // the driver's errors say what to do about a full bucket
	f.Passing = !settled(err)
	return f
}

// Codes of the server that the client library does not name. A write to a full bucket fails with
// storeFailed.
const (
	insufficientResources jetstream.ErrorCode = 10023
	storeFailed           jetstream.ErrorCode = 10077
)

// settled reports whether the server has understood the request and refuses it. All other errors
// are faults of the server or on the way to it, and may pass.
func settled(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code < http.StatusInternalServerError || api.ErrorCode == storeFailed
	}
	return errors.Is(err, jetstream.ErrBadBucket) || errors.Is(err, jetstream.ErrInvalidBucketName)
}
