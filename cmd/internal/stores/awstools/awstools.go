// Package awstools has the code shared by the kinds of stores that are configured as all of AWS's
// tools are.
package awstools

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver/s3object"
)

// Chain says in hints where credentials belong.
const Chain = "credentials come from the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE), " +
	"from ~/.aws or from the machine's role, as for all of AWS's tools; take them out of the URL"

// Secretive finds parameters by which people may try to pass credentials.
var Secretive = regexp.MustCompile(`(?i)key|secret|token|password|credential|profile|signature`)

// Load returns the configuration of AWS's tools, with the region of a URL if there is one. Clients
// read replaced credentials again. The hint is added where no region is known.
func Load(ctx context.Context, o kind.Options, region, hint string, more ...func(*config.LoadOptions) error) (aws.Config, error) {
	// the default logger prints
	load := append(slices.Clone(more), config.WithLogger(logging.Nop{}))
	if region != "" {
		load = append(load, config.WithRegion(region))
	}
	if o.Client != "" {
		load = append(load, config.WithAppID(strings.ReplaceAll(o.Client, " ", "-")))
	}
	cfg, err := s3object.LoadConfig(ctx, o.Stale, load...)
	switch {
	case err != nil:
		return cfg, fault.New("correct the files in ~/.aws, or unset AWS_PROFILE", "the configuration of AWS's tools: %w", err)
	case cfg.Region == "":
		return cfg, fault.OfValue(fault.New("put region=... into the URL or set AWS_REGION"+hint,
			"no region is known, and requests are signed for one"))
	}
	return cfg, nil
}

// LogIn retrieves the credentials. Otherwise the first request would do that, and a failure would
// be hard to tell from one of the request. The provider is nil if nothing is signed.
func LogIn(ctx context.Context, provider aws.CredentialsProvider) error {
	if provider == nil {
		return nil
	}
	if _, err := provider.Retrieve(ctx); err != nil {
		return fault.New("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or log in with the aws command",
			"no credentials are found: %w", err)
	}
	return nil
}

// Flags returns the flags of the AWS command line that reach a server.
func Flags(endpoint, region string) (flags string) {
	if endpoint != "" {
		flags += " --endpoint-url " + endpoint
	}
	if region != "" {
		flags += " --region " + region
	}
	return flags
}

// Look returns the HTTP status and the error code of an answer; 0 and "" if there was none.
func Look(err error) (status int, code string) {
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil {
		status = response.HTTPStatusCode()
	}
	return status, code
}
