package s3object

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// remedy is the remedy for one kind of answer.
type remedy struct {
	status int      // any answer of this status, or
	codes  []string // with one of these codes
	denied bool     // waiting does not help, an operator must grant a right
	text   func(s *Store, d purpose, a answer) string
}

func (r remedy) fits(a answer) bool {
	return r.status != 0 && a.status == r.status || slices.Contains(r.codes, a.code)
}

// remedies are tried in order: those with a code come before those with a status alone.
var remedies = []remedy{
	{codes: []string{"NoSuchBucket"}, text: noBucket},
	{codes: []string{"RequestTimeTooSkewed"}, text: wrongClock},
	{codes: []string{"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
		"IllegalLocationConstraintException"}, text: wrongRegion},
	{codes: []string{"InvalidAccessKeyId"}, denied: true, text: always("the server does not know the access key: it " +
		"may have been replaced; give the present one (AWS_ACCESS_KEY_ID, or the profile); if it is right, the endpoint belongs to another server")},
	{codes: []string{"SignatureDoesNotMatch"}, denied: true, text: always("the signature is wrong: the " +
		"secret key may have been replaced; give the present one (AWS_SECRET_ACCESS_KEY, or the profile); if it is right, a proxy changes requests")},
	{codes: []string{"ExpiredToken", "InvalidToken", "TokenRefreshRequired"}, denied: true,
		text: always("the session of the credentials is over or another's; log in again or renew AWS_SESSION_TOKEN")},
	{codes: []string{"NotImplemented"}, status: http.StatusNotImplemented, text: notImplemented},
	{codes: []string{"ObjectParentIsFile", "ExistingObjectIsDirectory"}, text: always("this server keeps objects as files, " +
		"and cannot hold an object whose name another one continues after a slash; choose other names for elections")},
	{codes: []string{"SlowDown"}, status: http.StatusTooManyRequests, text: always("the server asks for fewer requests")},
	{status: http.StatusMovedPermanently, text: wrongRegion},
	{status: http.StatusTemporaryRedirect, text: wrongRegion},
	{status: http.StatusPermanentRedirect, text: wrongRegion},
	{status: http.StatusForbidden, denied: true, text: noRight},
	{status: http.StatusUnauthorized, denied: true, text: noRight},
	{status: http.StatusNotFound, text: always("this is not how S3 says that an object is missing; check the endpoint, " +
		"and what is in between")},
}

func always(text string) func(*Store, purpose, answer) string {
	return func(*Store, purpose, answer) string { return text }
}

func noBucket(s *Store, _ purpose, _ answer) string {
	return fmt.Sprintf("there is no bucket %s; check its name, the region %s and the endpoint, or make it with "+
		"\"aws s3 mb s3://%s\"", s.bucket, s.region, s.bucket)
}

// wrongClock is not a denial: the client library has learned from the answer how far the clock is
// off, and signs the next request accordingly unless it was configured not to.
func wrongClock(_ *Store, _ purpose, a answer) string {
	server := a.date()
	if server.IsZero() {
		return "the clock of this machine is too far off; set it"
	}
	return fmt.Sprintf("the clock of this machine is off by about %v from the server's; set it (the next request is signed "+
		"by the server's clock if the client may do so)", time.Since(server).Round(time.Minute).Abs())
}

func wrongRegion(s *Store, _ purpose, a answer) string {
	right := a.header.Get("X-Amz-Bucket-Region")
	if right == "" || right == s.region {
		return fmt.Sprintf("bucket %s is not to be reached with region %s at this endpoint; set the region that it is in",
			s.bucket, s.region)
	}
	return fmt.Sprintf("bucket %s is in region %s, not in %s; set AWS_REGION=%s or pass the region", s.bucket, right, s.region,
		right)
}

func notImplemented(_ *Store, d purpose, _ answer) string {
	if d == writing || d == checking {
		return "this server has no conditional writes, so that no election can be held on it; take another one or a newer release"
	}
	return "this server does not implement the request to read an object (501); check that the endpoint is that of an S3 API"
}

func noRight(s *Store, d purpose, _ answer) string {
	objects := fmt.Sprintf("arn:aws:s3:::%s/%s*", s.bucket, s.prefix)
	switch d {
	case writing:
		return fmt.Sprintf("writing needs s3:PutObject on %s, and no policy of the bucket may deny it", objects)
	case checking:
		return fmt.Sprintf("a candidate needs s3:GetObject and s3:PutObject on %s, also for the object of this check, and no policy "+
			"of the bucket may deny them", objects)
	}
	return fmt.Sprintf("reading needs s3:GetObject on %s, and s3:ListBucket on arn:aws:s3:::%s, without which S3 answers "+
		"like this where the object is missing", objects, s.bucket)
}
