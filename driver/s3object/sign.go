package s3object

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// signingAnew returns a client like the given one that signs with the present secret. The library's
// own signer derives its key once a day for each access key, so it would sign with the old secret
// after a secret has been replaced. AWS replaces access keys instead, but the users of other
// servers keep their names. A signer of the caller's own stays.
func signingAnew(client *s3.Client) *s3.Client {
	o := client.Options()
	if _, usual := o.HTTPSignerV4.(*v4.Signer); !usual {
		return client
	}
	o.HTTPSignerV4 = &signer{options: func(s *v4.SignerOptions) {
		s.Logger, s.LogSigning = o.Logger, o.ClientLogMode.IsSigning()
		s.DisableURIPathEscaping = true // S3 requires this
	}}
	o.AuthSchemes = nil // they hold the other signer
	return s3.New(o)
}

// signer uses another signer of the library for each secret.
type signer struct {
	options func(*v4.SignerOptions)
	last    atomic.Pointer[secretSigner]
}

type secretSigner struct {
	*v4.Signer
	secret string
}

// SignHTTP signs a request.
func (s *signer) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request,
	hash, service, region string, at time.Time, opts ...func(*v4.SignerOptions)) error {
	now := s.last.Load()
	if now == nil || now.secret != c.SecretAccessKey {
		now = &secretSigner{v4.NewSigner(s.options), c.SecretAccessKey}
		s.last.Store(now)
	}
	return now.Signer.SignHTTP(ctx, c, r, hash, service, region, at, opts...)
}
