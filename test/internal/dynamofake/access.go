package dynamofake

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The user with all rights.
const (
	Access = "tenure"
	Secret = "tenure-secret"
)

// All are the rights to all operations.
var All = []string{"CreateTable", "DescribeTable", "GetItem", "PutItem", "DeleteItem", "Scan"}

type user struct {
	secret  string
	rights  []string
	expired bool
}

// Allow gives a user a secret and the rights to operations, in place of all others.
func (s *Server) Allow(access, secret string, operations ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[access] = &user{secret: secret, rights: operations}
}

// Revoke removes a user.
func (s *Server) Revoke(access string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, access)
}

// Expire ends the session of a user.
func (s *Server) Expire(access string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[access].expired = true
}

// authorization matches the header of a signed request.
var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/\d+/([^/]+)/dynamodb/aws4_request, SignedHeaders=([^,]+), Signature=\w+$`)

// skew is how far the clock of a client may be off.
const skew = 5 * time.Minute

// refuses returns the error if the sender may not do this.
func (s *Server) refuses(r *http.Request, operation string, body []byte, in request) (code, message string) {
	parts := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if parts == nil {
		return "MissingAuthenticationTokenException", "Request is missing Authentication Token"
	}
	u := s.users[parts[1]]
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	switch off := time.Since(at); {
	case u == nil:
		return "UnrecognizedClientException", "The security token included in the request is invalid."
	case u.expired:
		return "ExpiredTokenException", "The security token included in the request is expired"
	case err != nil || off > skew:
		return "InvalidSignatureException", "Signature expired: " + at.String() + " is now earlier than the limit"
	case off < -skew:
		return "InvalidSignatureException", "Signature not yet current: " + at.String() + " is still later than the limit"
	case parts[2] != Region:
		return "InvalidSignatureException", "Credential should be scoped to a valid region"
	case !signed(r, body, parts, u.secret, at):
		return "InvalidSignatureException", "The request signature we calculated does not match the signature you provided."
	case !slices.Contains(u.rights, operation):
		return "AccessDeniedException", "User: " + parts[1] + " is not authorized to perform: dynamodb:" + operation + " on " + in.TableName
	}
	return "", ""
}

// signed signs the request once more, and compares.
func signed(r *http.Request, body []byte, parts []string, secret string, at time.Time) bool {
	again := r.Clone(r.Context())
	again.Header = http.Header{}
	again.URL.Scheme, again.URL.Host, again.RequestURI = "http", r.Host, ""
	again.ContentLength = 0
	for name := range strings.SplitSeq(parts[3], ";") {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = int64(len(body))
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	again.Header.Del("X-Amz-Date")
	sum := sha256.Sum256(body)
	c := aws.Credentials{AccessKeyID: parts[1], SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(r.Context(), c, again, hex.EncodeToString(sum[:]), "dynamodb", Region, at); err != nil {
		return false
	}
	return again.Header.Get("Authorization") == r.Header.Get("Authorization")
}
