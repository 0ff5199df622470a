package dynamotable

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/tenure-go/tenure/driver"
)

// look returns the HTTP status and the error code of an answer; 0 and "" if there was none.
func look(err error) (status int, code string) {
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

// isMissing reports whether there is no table.
func isMissing(err error) bool {
	_, code := look(err)
	return code == "ResourceNotFoundException" || code == "TableNotFoundException"
}

// busy are the codes of a service that wants fewer requests.
var busy = []string{
	"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded", "Throttling",
	"ReplicatedWriteConflictException", "TransactionConflictException",
}

// credentials are the codes of invalid credentials, with the remedy.
var credentials = map[string]string{
	"UnrecognizedClientException": "the service does not know the access key: give the present one (AWS_ACCESS_KEY_ID, or the " +
		"profile); if it is right, the region is disabled for the account",
	"InvalidSignatureException": "the signature is wrong: the secret key may have been replaced; give the present one " +
		"(AWS_SECRET_ACCESS_KEY, or the profile)",
	"ExpiredTokenException": "the session of the credentials is over; log in again or renew AWS_SESSION_TOKEN",
	"MissingAuthenticationTokenException": "the request was not signed; give credentials (AWS_ACCESS_KEY_ID and " +
		"AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role)",
	"MissingAuthenticationToken": "the request was not signed; give credentials (AWS_ACCESS_KEY_ID and " +
		"AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role)",
	"IncompleteSignatureException": "the signature is incomplete; check the credentials, and that no proxy changes requests",
}

// explain turns an error of the client library into one of the contract, with the remedy for an
// operator.
func (s *Store) explain(right string, err error) error {
	status, code := look(err)
	switch remedy := credentials[code]; {
	case status == 0:
		return unanswered(err)
	case code == "ConditionalCheckFailedException" && status == http.StatusBadRequest:
		return fmt.Errorf("%w (%s)", driver.ErrConflict, code)
	case isMissing(err):
		s.table.missing()
		return fmt.Errorf("there is no table %s; check its name, the region %s and the endpoint, or %s: %w", s.name,
			s.client.Options().Region, s.remedy(), err)
	// Not a denial: the client library has learned from the answer how far the clock is off.
	case isSkew(code, err):
		return fmt.Errorf("the clock of this machine is too far off; set it (the next request is signed by the service's clock): %w", err)
	case remedy != "":
		return fmt.Errorf("%w: %s: %w", driver.ErrDenied, remedy, err)
	case code == "AccessDeniedException", status == http.StatusForbidden, status == http.StatusUnauthorized:
		return fmt.Errorf("%w: this needs %s on table %s, and no policy may deny it: %w", driver.ErrDenied, right, s.name, err)
	case slices.Contains(busy, code):
		return fmt.Errorf("the service asks for fewer requests; with provisioned capacity, raise it or use PAY_PER_REQUEST: %w", err)
	case 300 <= status && status < 400:
		return fmt.Errorf("the server redirects (%d), as DynamoDB never does; check the endpoint, and proxies in between: %w", status, err)
	}
	return err
}

// isSkew reports whether the service refused the time of a signature.
func isSkew(code string, err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) || code != "InvalidSignatureException" && code != "RequestExpired" {
		return false
	}
	return code == "RequestExpired" || strings.Contains(api.ErrorMessage(), "Signature expired") ||
		strings.Contains(api.ErrorMessage(), "Signature not yet current")
}

// unanswered distinguishes a request that was never made from one that may have arrived.
func unanswered(err error) error {
	var sent *smithyhttp.RequestSendError
	var garbled *smithy.DeserializationError
	var cancelled *smithy.CanceledError
	if errors.As(err, &sent) || errors.As(err, &garbled) || errors.As(err, &cancelled) {
		return err
	}
	return fmt.Errorf("nothing could be sent; check that there are credentials (AWS_ACCESS_KEY_ID and "+
		"AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role): %w", err)
}
