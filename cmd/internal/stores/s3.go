package stores

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/s3object"
)

// S3 is a bucket of S3 or of a server that speaks its protocol. Credentials are not a part of it:
// they come from the environment, the configuration files or the machine's role, as for all of
// AWS's tools.
type S3 struct {
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

// String returns the URL.
func (s *S3) String() string {
	u := "s3://" + s.Bucket
	if s.Prefix != "" {
		u += "/" + s.Prefix
	}
	sign := "?"
	for _, p := range s.parameters() {
		if p.value != "" {
			u += sign + p.key + "=" + p.value
			sign = "&"
		}
	}
	return u
}

// GoString is String.
func (s *S3) GoString() string { return s.String() }

func (s *S3) name() string { return s.String() }

// parameter is a parameter of a URL.
type parameter struct{ key, value string }

// parameters returns those of the URL, as they would be written; the value is empty if one is not
// set.
func (s *S3) parameters() []parameter {
	ps := []parameter{{"endpoint", s.Endpoint}, {"region", s.Region}, {"path-style", ""}, {"unquoted", ""}}
	if s.PathStyle != nil {
		ps[2].value = strconv.FormatBool(*s.PathStyle)
	}
	if s.Unquoted {
		ps[3].value = "true"
	}
	return ps
}

// commands returns those of the AWS command line, or of curl if nothing is signed.
func (s *S3) commands(key string) Commands {
	name := key
	if s.Prefix != "" {
		name = s.Prefix + "/" + key
	}
	if s.Anonymous {
		object := s.Endpoint + "/" + s.Bucket + "/" + (&url.URL{Path: name}).EscapedPath()
		return Commands{Look: "curl " + object, Delete: "curl -X DELETE " + object}
	}
	object := "s3://" + s.Bucket + "/" + name
	return Commands{
		Look:   fmt.Sprintf("aws s3 cp %s -%s", object, s.flags()),
		Delete: fmt.Sprintf("aws s3 rm %s%s", object, s.flags()),
	}
}

// flags returns the flags of the AWS command line that reach the same server.
func (s *S3) flags() string {
	var flags string
	if s.Endpoint != "" {
		flags += " --endpoint-url " + s.Endpoint
	}
	if s.Region != "" {
		flags += " --region " + s.Region
	}
	return flags
}

// limits calls no server: the driver's store sends nothing before it is used.
func (s *S3) limits() (driver.Bounded, error) {
	return s3object.New(s3.New(s3.Options{Region: "any"}, s.address), s.Bucket, s.driverOptions()...)
}

func (s *S3) driverOptions() []s3object.Option {
	opts := []s3object.Option{s3object.WithPrefix(s.Prefix)}
	if s.Unquoted {
		opts = append(opts, s3object.WithUnquotedETags())
	}
	return opts
}
