package stores

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
)

// shapeS3 is the form of a URL of object storage in hints.
const shapeS3 = "s3://bucket/prefix?endpoint=http://host:9000&region=us-east-1"

// chain says in hints where credentials belong.
const chain = "credentials come from the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE), " +
	"from ~/.aws or from the machine's role, as for all of AWS's tools; take them out of the URL"

// otherStores is the hint where a server cannot hold elections.
const otherStores = "tenure help stores lists the stores that there are"

// parameters are those of s3:// URLs.
var parameters = []string{"endpoint", "region", "path-style", "unquoted"}

// parseS3 reads a URL of the form s3://bucket[/prefix][?parameter=value[&...]].
func parseS3(raw string) (*S3, error) {
	u, err := url.Parse(raw)
	switch {
	case err == nil && u.User != nil, err != nil && strings.Contains(raw, "@"):
		return nil, fault.New(chain, "has credentials in it")
	case err != nil && strings.Contains(err.Error(), "invalid URL escape"), err != nil && strings.Contains(err.Error(), "in host name"):
		return nil, fault.New(bucketNames, "the name of the bucket has characters that are not allowed")
	case err != nil && strings.Contains(err.Error(), "invalid port"):
		return nil, errHost
	case err != nil:
		return nil, fault.New("give a URL such as "+shapeS3, "is not a valid URL")
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return nil, fault.New("write # of a prefix as %23", "has a fragment behind #")
	}
	s := &S3{Prefix: strings.Trim(u.Path, "/")}
	if s.Bucket, err = s3Bucket(u); err != nil {
		return nil, err
	}
	if err := s.set(u.RawQuery); err != nil {
		return nil, err
	}
	switch _, err := s.limits(); {
	case errors.Is(err, driver.ErrUnfit): // the endpoint
		return nil, fault.New(otherStores, "%w", err)
	case err != nil: // the prefix
		return nil, fault.New("give a URL such as "+shapeS3, "%w", err)
	}
	return s, nil
}

var errHost = fault.New("the host of a server goes behind the bucket: "+shapeS3, "has a host where the bucket should be")

// s3BucketName matches names that S3 and every other server accept. Some servers accept more.
var s3BucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// bucketNames is the hint for a wrong name.
const bucketNames = "name a bucket of 3 to 63 small letters, digits, - and ., which begins and ends with a " +
	"letter or a digit, as in " + shapeS3

func s3Bucket(u *url.URL) (string, error) {
	switch {
	case u.Host == "":
		return "", fault.New("give a URL such as "+shapeS3, "names no bucket")
	case strings.ContainsAny(u.Host, ":[]"):
		return "", errHost
	case strings.Contains(u.Path, "@") && !s3BucketName.MatchString(u.Host):
		return "", fault.New(chain, "has credentials in it")
	case !s3BucketName.MatchString(u.Host), strings.Contains(u.Host, ".."):
		return "", fault.New(bucketNames, "no bucket can have the name %.80q", u.Host)
	}
	return u.Host, nil
}

// set takes the parameters.
func (s *S3) set(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fault.New("write & and % of a value as %26 and %25", "the parameters behind ? cannot be read")
	}
	for _, key := range keysIn(query) {
		if !slices.Contains(parameters, key) {
			return unknownParameter(key, values.Get(key))
		}
		if len(values[key]) > 1 {
			return fault.New("leave out one of them", "parameter %s is given twice", key)
		}
		if err := s.setOne(key, values.Get(key)); err != nil {
			return err
		}
	}
	return nil
}

func (s *S3) setOne(key, value string) error {
	var err error
	switch {
	case value == "":
		err = errors.New("is empty")
	case key == "endpoint":
		s.Endpoint = strings.TrimSuffix(value, "/")
		return checkEndpoint(value)
	case key == "region":
		s.Region = value
	case key == "path-style":
		var on bool
		on, err = truth(value)
		s.PathStyle = &on
	case key == "unquoted":
		s.Unquoted, err = truth(value)
	}
	if err != nil {
		return fault.New("give a URL such as "+shapeS3, "parameter %s %w", key, err)
	}
	return nil
}

func truth(value string) (bool, error) {
	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, errors.New("must be true or false")
	}
	return on, nil
}

func checkEndpoint(value string) error {
	u, err := url.Parse(value)
	switch {
	case err == nil && u.User != nil, err != nil && strings.Contains(value, "@"):
		return fault.New(chain, "has credentials in it")
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return fault.New("give a URL such as "+shapeS3, "parameter endpoint must be the URL of a server, with http:// or https://")
	}
	return nil
}

// secretive finds parameters by which people may try to pass credentials.
var secretive = regexp.MustCompile(`(?i)key|secret|token|password|credential|profile|signature`)

func unknownParameter(key, value string) error {
	if !names(key, value) {
		return fault.New("known are "+strings.Join(parameters, ", "), "an unknown parameter has no value")
	}
	hint := "known are " + strings.Join(parameters, ", ")
	if secretive.MatchString(key) {
		hint = chain
	}
	return fault.New(hint, "parameter %.40q is unknown", key)
}
