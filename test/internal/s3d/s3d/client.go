package s3d

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/test/internal/process"
)

// Client returns a client of one of the URLs, or of a relay to it, with all rights and no retries.
func Client(url string, change ...func(*s3.Options)) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(url), UsePathStyle: true, Region: Region,
		Credentials: credentials.NewStaticCredentialsProvider(Access, Secret, ""),
		Retryer:     aws.NopRetryer{},

		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}, change...)
}

// As gives a client other credentials.
func As(access, secret string) func(*s3.Options) {
	return func(o *s3.Options) { o.Credentials = credentials.NewStaticCredentialsProvider(access, secret, "") }
}

// CreateBucket creates a bucket.
func (s *Server) CreateBucket(ctx context.Context, name string) error {
	_, err := Client(s.URLs()[0]).CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	return err
}

func (s *Server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, process.Patience)
	defer cancel()
	for _, p := range s.front() {
		if err := p.answers(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answers waits until the process answers requests that need its data. Some servers listen long
// before they have read it, and MinIO finds its own user before it can say that another one is
// unknown.
func (s *server) answers(ctx context.Context) error {
	known, unknown := Client(s.url()), Client(s.url(), As("nobody", Secret))
	return s.Await(ctx, func(ctx context.Context) error {
		if _, err := known.ListBuckets(ctx, &s3.ListBucketsInput{}); err != nil {
			return err
		}
		_, err := unknown.ListBuckets(ctx, &s3.ListBucketsInput{})
		if decided(err) {
			return nil
		}
		return err
	})
}

// decided reports whether the server has answered, other than by an error of its own.
func decided(err error) bool {
	var answer interface{ HTTPStatusCode() int }
	return err == nil || errors.As(err, &answer) && answer.HTTPStatusCode() < http.StatusInternalServerError
}

// Skewed makes a client sign with a wrong time of day.
func Skewed(by time.Duration) func(*s3.Options) {
	// S3 requires this.
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	return func(o *s3.Options) { o.HTTPSignerV4 = skewed{signer, by} }
}

type skewed struct {
	s3.HTTPSignerV4
	by time.Duration
}

// SignHTTP signs with the wrong time.
func (s skewed) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request,
	hash, service, region string, at time.Time, opts ...func(*v4.SignerOptions)) error {
	return s.HTTPSignerV4.SignHTTP(ctx, c, r, hash, service, region, at.Add(s.by), opts...)
}
