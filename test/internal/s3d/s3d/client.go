package s3d

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

// The credentials of all servers.
const (
	// Access and Secret belong to a user with all rights.
	Access = "tenure"
	Secret = "tenure-secret"
	// Stranger and StrangerSecret belong to a user of versitygw without rights to other users'
	// buckets.
	Stranger       = "stranger"
	StrangerSecret = "stranger-secret"
	// Region is the region of all servers.
	Region = "eu-test-1"

	azureKey = "dGVudXJlLXNlY3JldA==" // base64, as Azure's protocol requires
)

// writeUsers adds the user Stranger to the file of versitygw.
func writeUsers(p place) error {
	type account struct {
		Access string `json:"access"`
		Secret string `json:"secret"`
		Role   string `json:"role"`
	}
	all := map[string]map[string]account{"accessAccounts": {Stranger: {Stranger, StrangerSecret, "user"}}}
	encoded, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.users(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.users(), "users.json"), encoded, 0o600)
}

// Rekey gives the user Stranger of versitygw another secret, and the rights of an administrator.
func (s *Server) Rekey(ctx context.Context, secret string) error {
	body := "<MutableProps><Secret>" + secret + "</Secret><Role>admin</Role></MutableProps>"
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, s.URLs()[0]+"/update-user?access="+Stranger, strings.NewReader(body))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	admin := aws.Credentials{AccessKeyID: Access, SecretAccessKey: Secret}
	if err := v4.NewSigner().SignHTTP(ctx, admin, r, hash, "s3", Region, time.Now()); err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", answer.Status)
	}
	return nil
}
