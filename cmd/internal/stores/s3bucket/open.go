package s3bucket

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver/s3object"
)

// Open returns a store with a client of its own. It calls the server only to make a bucket.
func (s *Place) Open(ctx context.Context, o kind.Options) (*kind.Opened, error) {
	client, err := s.client(ctx, o)
	if err != nil {
		return nil, err
	}
	store, err := s3object.New(client, s.Bucket, s.driverOptions()...)
	if err != nil {
		return nil, fault.New(otherStores, "%w", err)
	}
	if o.Create {
		if err := s.create(ctx, client); err != nil {
			return nil, err
		}
	}
	return &kind.Opened{
		Driver: store, Close: func() error { return nil },
		LogIn: func(ctx context.Context) error { return login(ctx, client) },
	}, nil
}

// client returns a client that is configured like all of AWS's tools, except for the settings in
// the URL.
func (s *Place) client(ctx context.Context, o kind.Options) (*s3.Client, error) {
	// the default logger prints
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if s.Region != "" {
		load = append(load, config.WithRegion(s.Region))
	}
	if s.Anonymous {
		load = append(load, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	if o.Client != "" {
		load = append(load, config.WithAppID(strings.ReplaceAll(o.Client, " ", "-")))
	}
	cfg, err := s3object.LoadConfig(ctx, o.Stale, load...)
	if err != nil {
		return nil, fault.New("correct the files in ~/.aws, or unset AWS_PROFILE", "the configuration of AWS's tools: %w", err)
	}
	if cfg.Region == "" {
		return nil, fault.OfValue(fault.New("put region=... into the URL or set AWS_REGION; us-east-1 works for most servers other than S3",
			"no region is known, and requests are signed for one"))
	}
	made := s3.NewFromConfig(cfg, s.address)
	if at := made.Options().BaseEndpoint; at != nil && checkEndpoint(*at) != nil {
		return nil, fault.OfValue(fault.New("give the address alone, such as http://host:9000; credentials have variables of their own",
			"the endpoint of AWS_ENDPOINT_URL, or of ~/.aws, is not the URL of a server"))
	}
	return made, nil
}

// address sets the endpoint and the style of addresses. It runs after the SDK has read the endpoint
// of the environment.
func (s *Place) address(o *s3.Options) {
	if s.Endpoint != "" {
		o.BaseEndpoint = &s.Endpoint
	}
	o.UsePathStyle = o.UsePathStyle || o.BaseEndpoint != nil
	if s.PathStyle != nil {
		o.UsePathStyle = *s.PathStyle
	}
}

// login retrieves the credentials. Otherwise the first request would do that, and a failure would
// be hard to tell from one of the request.
func login(ctx context.Context, client *s3.Client) error {
	c := client.Options().Credentials
	if c == nil { // nothing is signed
		return nil
	}
	if _, err := c.Retrieve(ctx); err != nil {
		return fault.New("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or log in with the aws command",
			"no credentials are found: %w", err)
	}
	return nil
}

// create makes the bucket if it is missing. It ignores other errors, since reading a record reports
// them better.
func (s *Place) create(ctx context.Context, client *s3.Client) error {
	if err := login(ctx, client); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kind.CreateWithin)
	defer cancel()
	_, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.Bucket})
	if status, _ := look(err); status != http.StatusNotFound {
		return nil
	}
	in := &s3.CreateBucketInput{Bucket: &s.Bucket}
	if region := client.Options().Region; region != "us-east-1" { // which has no name there
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
	}
	_, err = client.CreateBucket(ctx, in)
	var mine *types.BucketAlreadyOwnedByYou
	if err != nil && !errors.As(err, &mine) {
		return s.explainCreate(err)
	}
	if err := s3.NewBucketExistsWaiter(client).Wait(ctx, &s3.HeadBucketInput{Bucket: &s.Bucket}, kind.CreateWithin); err != nil {
		return fault.Passing("wait a while and try again", "bucket %s was made, but is not there yet: %w", s.Bucket, err)
	}
	return nil
}
