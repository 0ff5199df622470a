package kind

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/reread"
)

// MadeBy returns the hint for a bucket, topic or table that is missing. Commands that only read
// cannot make it.
func MadeBy(command string) string {
	return "check its name; --create, which the commands that hold elections have, makes it, and so does: " + command
}

// networkOperations are those of a net.OpError that mean trouble on the way to a server. The other
// operations come from TLS: the server refuses the client.
var networkOperations = []string{"dial", "read", "write"}

// Away reports whether a client did not reach its server, which may be reachable later.
func Away(err error) bool {
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

// OtherStores is the hint where a server cannot hold elections.
const OtherStores = "tenure help stores lists the stores that there are"

// ExplainHTTP explains an error of a driver that says itself what to do. The status is that of the
// server's answer; 0: there was none. Rights is the hint where a right is missing, and network that
// where no server answers.
func ExplainHTTP(err error, status int, server, rights, network string) *fault.Error {
	switch {
	case errors.Is(err, driver.ErrUnfit):
		return fault.New(OtherStores, "%w", err)
	case errors.Is(err, driver.ErrDenied):
		return fault.New(rights, "%w", err)
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return fault.Passing("", "%w", err)
	case status == 0 && Away(err):
		return fault.Passing(network, "no answer from %s: %w", server, Root(err))
	}
	return fault.New("", "%w", err)
}

// Root returns the network error that err wraps, or err itself.
func Root(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	return err
}

// TLSOfFiles takes the authorities of the system if ca is empty. The prefix begins the names of the
// settings in errors.
func TLSOfFiles(prefix, ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%sca: %w", prefix, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%sca: %s holds no certificate in PEM", prefix, ca)
		}
	}
	if cert == "" && key == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%scert %q with %skey %q: %w", prefix, cert, prefix, key, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// PasswordHint is for errors of PasswordOf, if the parameter is password-file.
const PasswordHint = "password-file names a file with the password on its first line"

// PasswordOf reads the password on the first line of a file, again for each use.
func PasswordOf(file string, stale func(error)) (*reread.Source[string], error) {
	first, err := ReadPassword(file)
	if err != nil {
		return nil, err
	}
	return reread.New(first, func(context.Context) (string, error) { return ReadPassword(file) }, stale), nil
}

// ReadPassword returns the password on the first line of a file.
func ReadPassword(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if first = strings.TrimSpace(first); first == "" {
		return "", fmt.Errorf("%s: the file holds no password", file)
	}
	return first, nil
}
