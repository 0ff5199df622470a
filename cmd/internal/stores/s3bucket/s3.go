// Package s3bucket describes stores in buckets of object storage.
package s3bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/awstools"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/s3object"
)

// Place is a bucket of S3 or of a server that speaks its protocol. Credentials are not a part of
// it: they come from the environment, the configuration files or the machine's role, as for all of
// AWS's tools.
type Place struct {
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Region   string `json:"region,omitempty"`
	// PathStyle addresses the bucket by path, or not; nil: by path if there is an endpoint other
	// than S3's.
	PathStyle *bool `json:"pathStyle,omitempty"`
	// Unquoted begins with ETags without quotes.
	Unquoted bool `json:"unquoted,omitempty"`
	// Anonymous signs nothing.
	Anonymous bool `json:"anonymous,omitempty"`
}

var parameters = []kind.Parameter{
	{Name: "endpoint", Value: "URL", Meaning: "a server other than S3 itself"},
	{Name: "region", Value: "NAME", Meaning: "region of the bucket; us-east-1 works for most other servers"},
	{Name: "path-style", Value: "BOOL", Meaning: "address the bucket by path; true by default if there is an endpoint"},
	{Name: "unquoted", Value: "true", Meaning: "begin with ETags without quotes, as Ceph wants them; else detected"},
}

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:       "s3",
		Container: "bucket",
		Schemes:   []kind.Scheme{{Name: "s3", Form: "s3://BUCKET[/PREFIX]"}},
		Refused: map[string]error{
			"s3-embedded": fault.New("give s3-embedded: to tenure-demo, with nothing behind the colon, or "+example,
				"the server of s3-embedded runs inside tenure-demo alone"),
		},
		About:      "Object storage, --store s3://BUCKET[/PREFIX][?...], takes these parameters",
		Parameters: parameters,
		Notes: `Credentials come from where all of AWS's tools find them, such as AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, AWS_PROFILE, ~/.aws or the machine's role, never from the URL.`,
		Polled:      []string{"object storage"},
		TokenDigits: len("1795270861001"), // milliseconds of a server's clock
		DemoLease:   5 * time.Second,
		Parse:       func(_, raw string) (kind.Place, error) { return parse(raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

// String returns the URL.
func (s *Place) String() string {
	u := "s3://" + s.Bucket
	if s.Prefix != "" {
		u += "/" + s.Prefix
	}
	style, unquoted := "", ""
	if s.PathStyle != nil {
		style = strconv.FormatBool(*s.PathStyle)
	}
	if s.Unquoted {
		unquoted = "true"
	}
	return kind.With(u, "?", [2]string{"endpoint", s.Endpoint}, [2]string{"region", s.Region},
		[2]string{"path-style", style}, [2]string{"unquoted", unquoted})
}

// GoString is String.
func (s *Place) GoString() string { return s.String() }

// Product returns object storage.
func (s *Place) Product() string { return "object storage" }

// Pushes returns false.
func (s *Place) Pushes() bool { return false }

// Prices returns those of AWS, which docs/object-storage.md also has, or none for another server.
func (s *Place) Prices() kind.Prices {
	if s.Endpoint != "" {
		return kind.Prices{}
	}
	return kind.Prices{Read: 0.0004, Write: 0.005, List: "S3 Standard, us-east-1", Date: "2026-11-21"}
}

// Commands returns those of the AWS command line, or of curl if nothing is signed.
func (s *Place) Commands(key string) kind.Commands {
	name := key
	if s.Prefix != "" {
		name = s.Prefix + "/" + key
	}
	if s.Anonymous {
		object := s.Endpoint + "/" + s.Bucket + "/" + (&url.URL{Path: name}).EscapedPath()
		return kind.Commands{Look: "curl " + object, Delete: "curl -X DELETE " + object}
	}
	object := "s3://" + s.Bucket + "/" + name
	return kind.Commands{
		Look:   fmt.Sprintf("aws s3 cp %s -%s", object, s.flags()),
		Delete: fmt.Sprintf("aws s3 rm %s%s", object, s.flags()),
	}
}

// flags returns the flags of the AWS command line that reach the same server.
func (s *Place) flags() string { return awstools.Flags(s.Endpoint, s.Region) }

// Limits calls no server: the driver's store sends nothing before it is used.
func (s *Place) Limits() (driver.Bounded, error) {
	return s3object.New(s3.New(s3.Options{Region: "any"}, s.address), s.Bucket, s.driverOptions()...)
}

func (s *Place) driverOptions() []s3object.Option {
	opts := []s3object.Option{s3object.WithPrefix(s.Prefix)}
	if s.Unquoted {
		opts = append(opts, s3object.WithUnquotedETags())
	}
	return opts
}

// The form of a URL in hints.
const (
	example  = "s3://bucket/prefix?endpoint=http://host:9000&region=us-east-1"
	likeThis = "give a URL such as " + example
)

// parse reads a URL of the form s3://bucket[/prefix][?parameter=value[&...]].
func parse(raw string) (*Place, error) {
	switch _, err := url.Parse(raw); {
	case err == nil, strings.Contains(raw, "@"):
	case strings.Contains(err.Error(), "invalid URL escape"), strings.Contains(err.Error(), "in host name"):
		return nil, fault.New(bucketNames, "the name of the bucket has characters that are not allowed")
	case strings.Contains(err.Error(), "invalid port"):
		return nil, errHost
	}
	u, err := kind.ParseURL(raw, awstools.Chain, likeThis)
	if err != nil {
		return nil, err
	}
	s := &Place{Prefix: strings.Trim(u.Path, "/")}
	if s.Bucket, err = bucket(u); err != nil {
		return nil, err
	}
	if err := s.set(u.RawQuery); err != nil {
		return nil, err
	}
	switch _, err := s.Limits(); {
	case errors.Is(err, driver.ErrUnfit): // the endpoint
		return nil, fault.New(kind.OtherStores, "%w", err)
	case err != nil: // the prefix
		return nil, fault.New(likeThis, "%w", err)
	}
	return s, nil
}

var errHost = fault.New("the host of a server goes behind the bucket: "+example, "has a host where the bucket should be")

// isBucket accepts names that S3 and every other server accept. Some servers accept more.
func isBucket(name string) bool {
	return 3 <= len(name) && len(name) <= 63 && bucketName.MatchString(name)
}

// bucketName leaves the length out: {1,61} would take 40 KB of memory in every process.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`)

// bucketNames is the hint for a wrong name.
const bucketNames = "name a bucket of 3 to 63 small letters, digits, - and ., which begins and ends with a " +
	"letter or a digit, as in " + example

func bucket(u *url.URL) (string, error) {
	switch {
	case u.Host == "":
		return "", fault.New(likeThis, "names no bucket")
	case strings.ContainsAny(u.Host, ":[]"):
		return "", errHost
	case strings.Contains(u.Path, "@") && !isBucket(u.Host):
		return "", fault.New(awstools.Chain, "has credentials in it")
	case !isBucket(u.Host), strings.Contains(u.Host, ".."):
		return "", fault.New(bucketNames, "no bucket can have the name %.80q", u.Host)
	}
	return u.Host, nil
}

// set takes the parameters.
func (s *Place) set(query string) error {
	q := kind.Query{Known: kind.Names(parameters), Hint: likeThis, Elsewhere: awstools.Chain, IsCredential: awstools.Secretive.MatchString}
	return q.Each(query, func(key, value string) (err error) {
		switch key {
		case "endpoint":
			s.Endpoint, err = kind.Endpoint(value, awstools.Chain)
		case "region":
			s.Region = value
		case "path-style":
			s.PathStyle = new(bool)
			*s.PathStyle, err = kind.Bool(value)
		case "unquoted":
			s.Unquoted, err = kind.Bool(value)
		}
		return err
	})
}

// Open returns a store with a client of its own. It calls the server only to make a bucket.
func (s *Place) Open(ctx context.Context, o kind.Options) (*kind.Opened, error) {
	client, err := s.client(ctx, o)
	if err != nil {
		return nil, err
	}
	store, err := s3object.New(client, s.Bucket, s.driverOptions()...)
	if err != nil {
		return nil, fault.New(kind.OtherStores, "%w", err)
	}
	if o.Create {
		if err := s.create(ctx, client); err != nil {
			return nil, err
		}
	}
	return &kind.Opened{
		Driver: store, Close: func() error { return nil },
		LogIn: func(ctx context.Context) error { return awstools.LogIn(ctx, client.Options().Credentials) },
	}, nil
}

// client returns a client that is configured like all of AWS's tools, except for the settings in
// the URL.
func (s *Place) client(ctx context.Context, o kind.Options) (*s3.Client, error) {
	var more []func(*config.LoadOptions) error
	if s.Anonymous {
		more = append(more, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	cfg, err := awstools.Load(ctx, o, s.Region, "; us-east-1 works for most servers other than S3", more...)
	if err != nil {
		return nil, err
	}
	made := s3.NewFromConfig(cfg, s.address)
	at := cmp.Or(made.Options().BaseEndpoint, aws.String("https://host"))
	if _, err := kind.Endpoint(*at, awstools.Chain); err != nil {
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

// create makes the bucket if it is missing. It ignores other errors, since reading a record reports
// them better.
func (s *Place) create(ctx context.Context, client *s3.Client) error {
	if err := awstools.LogIn(ctx, client.Options().Credentials); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kind.CreateWithin)
	defer cancel()
	_, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.Bucket})
	if status, _ := awstools.Look(err); status != http.StatusNotFound {
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
