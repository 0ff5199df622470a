package s3bucket

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/awstools"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
)

var regionCodes = []string{
	"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException",
}

// anotherRegion is the hint for a wrong region.
const anotherRegion = "put the region that the bucket is in into the URL as region=..., or set AWS_REGION"

// Explain returns the error for a bucket that cannot be used. The driver's errors say what to do.
// Hints add the settings of the command, and documents.
func (s *Place) Explain(err error) *fault.Error {
	switch status, code := awstools.Look(err); {
	case errors.Is(err, driver.ErrUnfit):
		return fault.New(kind.OtherStores, "%w", err)
	case code == "NoSuchBucket":
		return fault.New(kind.MadeBy(fmt.Sprintf("aws s3 mb s3://%s%s", s.Bucket, s.flags())),
			"there is no bucket %s", s.Bucket)
	case code == "InvalidBucketName":
		return fault.New(bucketNames, "the server does not accept the name of bucket %s", s.Bucket)
	case slices.Contains(regionCodes, code), 300 <= status && status < 400:
		return fault.New(anotherRegion, "%w", err)
	// without a code it is the text of another process
	case code == "AccessDenied", code == "" && errors.Is(err, driver.ErrDenied):
		return fault.New("docs/object-storage.md has a policy that is enough for a candidate", "%w", err)
	case status == http.StatusNotFound: // the driver knows how S3 says that an object is missing
		return fault.New("endpoint= must be the address of the S3 API, not of a console or another web server; give one such as "+example, "%w", err)
	case status == 0 && code == "":
		f := s.unreachable(err)
		f.Passing = kind.Away(err)
		return f
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return fault.Passing("", "%w", err)
	}
	return fault.New("", "%w", err)
}

func (s *Place) explainCreate(err error) *fault.Error {
	switch _, code := awstools.Look(err); code {
	case "BucketAlreadyExists":
		return fault.New("choose another name", "bucket %s belongs to another account", s.Bucket)
	case "AccessDenied":
		return fault.New("grant s3:CreateBucket, or ask an operator to make it with: aws s3 mb s3://"+s.Bucket+s.flags(),
			"bucket %s cannot be made: %w", s.Bucket, brief(err))
	case "InvalidLocationConstraint":
		return fault.New(anotherRegion, "the region is wrong: %w", brief(err))
	}
	return s.Explain(err).Behind("bucket " + s.Bucket + " cannot be made")
}

// unreachable explains that no server answers.
func (s *Place) unreachable(err error) *fault.Error {
	var (
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		verified  *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		timeout   net.Error
	)
	server := s.server()
	switch {
	case errors.As(err, &authority):
		return fault.New("set AWS_CA_BUNDLE to a file with the server's CA", "%s has a certificate of an unknown authority", server)
	case errors.As(err, &verified):
		return fault.New("give endpoint= with a host that is in the server's certificate, or have the certificate renewed",
			"the certificate of %s is not valid: %w", server, verified.Err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fault.New("give endpoint=http://... instead of https://", "%s has no TLS", server)
	case errors.As(err, &name):
		return fault.New("check endpoint=, and the region", "no server answers at %s: %w", server, name)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fault.New("check endpoint=, and that no firewall is in between", "no server answers at %s in time", server)
	}
	return fault.New("check endpoint= in the URL, and that the server runs", "no server answers at %s: %w", server, kind.Root(err))
}

// server returns the name of the server for messages.
func (s *Place) server() string { return cmp.Or(s.Endpoint, "S3") }

// brief returns the server's own message, without the text of the client library around it.
func brief(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	return errors.New(strings.TrimRight(api.ErrorCode()+": "+api.ErrorMessage(), ": "))
}
