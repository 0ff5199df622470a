package s3object

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
)

var errNoRegion = errors.New("no region is known, and requests are signed for one: set AWS_REGION, give region in the " +
	"profile, or pass the region when making the store or its client (us-east-1 does for most servers other than S3)")

// FromEnvironment returns the elections in a bucket, over a client of its own that is configured
// like AWS's tools: by environment variables (AWS_REGION, AWS_PROFILE, AWS_ACCESS_KEY_ID,
// AWS_ENDPOINT_URL_S3 and so on), by the files in ~/.aws, and by the roles of containers and
// machines. Replaced credentials need no restart: see LoadConfig. If the configuration names an
// endpoint, the bucket is addressed by path. For other settings make a client and pass it to New.
//
// FromEnvironment sends no request to S3: the first call looks for credentials. It returns an error
// if the configuration cannot be read, no region is known, or the endpoint, the bucket's name or
// the prefix is not valid.
func FromEnvironment(ctx context.Context, bucket string, opts ...Option) (*Store, error) {
	set := settle(opts)
	s, err := fromEnvironment(ctx, bucket, set)
	if err != nil {
		return nil, fmt.Errorf("s3object: %w", err)
	}
	return s, nil
}

func fromEnvironment(ctx context.Context, bucket string, set settings) (*Store, error) {
	if err := set.checkEndpoint(); err != nil {
		return nil, err
	}
	var load []func(*config.LoadOptions) error
	if set.region != "" {
		load = append(load, config.WithRegion(set.region))
	}
	var logger logging.Logger
	report := func(err error) {
		logger.Logf(logging.Warn, "s3object: credentials cannot be read again, the last ones stay in use: %v", err)
	}
	cfg, err := LoadConfig(ctx, report, load...)
	logger = cfg.Logger
	if err != nil {
		return nil, fmt.Errorf("the configuration of the AWS SDK: %w", err)
	}
	return newStore(s3.NewFromConfig(cfg, set.address), bucket, set)
}

func (set settings) checkEndpoint() error {
	if set.endpoint == "" {
		return nil
	}
	u, err := url.Parse(set.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("endpoint %q: want a URL such as https://s3.example.com", set.endpoint)
	}
	return nil
}

// address runs after the environment's endpoint was looked up.
func (set settings) address(o *s3.Options) {
	if set.endpoint != "" {
		o.BaseEndpoint = &set.endpoint
	}
	o.UsePathStyle = o.UsePathStyle || set.pathStyle || o.BaseEndpoint != nil
}
