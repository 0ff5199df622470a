package s3object

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
)

// Inspect tests the properties that elections rely on, for elections with leases up to the one
// given. It writes objects of its own, whose names begin with .tenure-probe- under the prefix, and
// removes them again. It checks whether the server refuses conditional writes when it should, one
// at a time and then in races: 32 times 16 writers create the same object, and 32 times 16 writers
// replace the same version. If two writers win in one race of five, 998 of 1,000 inspections find
// that. The worse the server, the more inspections find it. It also checks ETags, reads, the
// server's clock and the bucket's versioning.
//
// That takes some 1,130 requests, at most 64 at a time, and a few seconds; S3 bills about half a
// cent. Without the right to delete, the objects stay and a finding reports that. Without
// s3:GetBucketVersioning, Inspect does not check versioning.
//
// Errors are as for Read; without the right to write the error also wraps driver.ErrDenied. After
// an error the objects may still be there.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	return newProbe(s, lease).inspect(ctx)
}

func (p *probe) inspect(ctx context.Context) ([]driver.Finding, error) {
	err := context.Cause(ctx)
	if err == nil {
		err = p.run(ctx)
		p.clean(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("s3object: inspect bucket %s under %q: %w", p.s.bucket, p.s.prefix, err)
	}
	return p.found, nil
}

// run has an order in which each step can rely on those before it.
func (p *probe) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		p.atCreation, p.atReading, p.atSwap, p.atOldVersion, p.atRemoved, p.atRaces, p.atVersioning,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// atCreation leaves the object there, in a version.
func (p *probe) atCreation(ctx context.Context) error {
	v, refused, err := p.write(ctx, p.first, condition{"", p.bare}, "created")
	if err != nil {
		return err
	}
	if refused {
		p.find(driver.Unsafe, "If-None-Match", "the server refuses to create a missing object with If-None-Match: *, so "+
			"no election ever begins", anotherServer)
		p.creates, p.swaps = false, false
		return nil
	}
	p.version = v
	again, refused, err := p.write(ctx, p.first, condition{"", p.bare}, "CREATED")
	if err != nil || refused {
		return err
	}
	p.version, p.creates = again, false
	p.find(driver.Unsafe, "If-None-Match", object.Overwrites, anotherServer+notVersioned)
	return nil
}

// atReading also takes the time of the server's clock.
func (p *probe) atReading(ctx context.Context) error {
	e, err := p.s.get(ctx, p.first)
	if err != nil {
		return p.s.explain(reading, err)
	}
	p.found = append(p.found, object.AtClock(e.Floor, time.Now(), "at 15 min signatures are refused")...)
	if e.Version != p.version {
		p.late()
	}
	return nil
}

func (p *probe) late() {
	if p.stale {
		return
	}
	p.stale = true
	p.find(driver.Warning, "consistency", "a read does not see a write that was acknowledged before: elections take longer, and "+
		"the loss of the server may take writes back", "use the server without a cache in between, or one with strong consistency")
}

// atSwap finds out which form the server takes, and leaves the object in a new version.
func (p *probe) atSwap(ctx context.Context) error {
	if !p.swaps {
		return nil
	}
	for _, bare := range []bool{p.bare, !p.bare} {
		v, refused, err := p.write(ctx, p.first, condition{p.version, bare}, "swapped")
		if err != nil {
			return err
		}
		if !refused {
			p.took(v, bare)
			return nil
		}
	}
	p.swaps = false
	p.find(driver.Unsafe, "If-Match", "the server refuses to replace an object with the ETag of its present version in If-Match: "+
		"no leader can renew its lease", anotherServer)
	return nil
}

func (p *probe) took(v driver.Version, bare bool) {
	if bare && !p.bare {
		p.find(driver.Advice, "If-Match", "ETags with quotes are refused, as with Ceph's gateway: each process finds "+
			"this out by itself, at the cost of a refused renewal", "pass s3object.WithUnquotedETags")
	}
	if v == p.version {
		p.find(driver.Unsafe, "ETag", "two different contents have the same ETag: a write that expects an old version may replace a newer one", anotherServer)
	}
	p.bare, p.old, p.version = bare, p.version, v
}

// atOldVersion writes from the version before the present one.
func (p *probe) atOldVersion(ctx context.Context) error {
	if !p.swaps || p.old == p.version {
		return nil
	}
	_, refused, err := p.write(ctx, p.first, condition{p.old, p.bare}, "too late")
	if err != nil || refused {
		return err
	}
	p.swaps = false
	p.find(driver.Unsafe, "If-Match", object.Replaces("If-Match", "version"), anotherServer)
	return nil
}

// atRemoved writes from a version to an object that does not exist.
func (p *probe) atRemoved(ctx context.Context) error {
	if !p.swaps {
		return nil
	}
	_, refused, err := p.write(ctx, p.name(), condition{p.version, p.bare}, "too late")
	if err != nil || refused {
		return err
	}
	p.find(driver.Warning, "If-Match", "the server creates a deleted object again although If-Match names a version: a record "+
		"that was deleted to force a new leader may come back", "do not delete records on this server")
	return nil
}

// atVersioning assumes the default pace of three renewals a lease. Without the right to read the
// setting it reports nothing.
func (p *probe) atVersioning(ctx context.Context) error {
	out, err := p.s.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &p.s.bucket}, once)
	if err != nil || out.Status != types.BucketVersioningStatusEnabled || p.lease <= 0 {
		return context.Cause(ctx)
	}
	p.find(driver.Advice, "versioning", fmt.Sprintf("each renewal stays as a noncurrent version: about %.0f a minute and %d a day "+
		"with a lease of %v", 3*time.Minute.Seconds()/p.lease.Seconds(), 3*24*time.Hour/p.lease, p.lease), fmt.Sprintf(
		`add a rule to the bucket's lifecycle (this command replaces the rules that there are): aws s3api put-bucket-lifecycle-`+
			`configuration --bucket %s --lifecycle-configuration '{"Rules":[{"ID":"elections","Status":"Enabled","Filter":`+
			`{"Prefix":"%s"},"NoncurrentVersionExpiration":{"NoncurrentDays":1}}]}'`, p.s.bucket, p.s.prefix))
	return nil
}

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

// CheckRights returns an error that wraps driver.ErrDenied if the right to write the object is
// missing. It asks to complete a multipart upload that was never begun. That needs the right to put
// the object, and leaves nothing that a server could store. It does not use a conditional put,
// because a server that ignores the conditions of writes would overwrite the object. A server
// without uploads in parts cannot tell; its answer counts as yes.
//
// If this store has not yet checked whether its server heeds conditions, CheckRights does that,
// too. So a follower need not do it when it is elected. Then the error wraps driver.ErrUnfit if the
// server ignores one, and driver.ErrDenied if the right to the object of that check is missing.
//
// CheckRights returns the error of CheckKey, and any other error if there was no answer.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	err := object.Ready(ctx, s, key)
	if err == nil {
		err = s.askForRight(ctx, key)
	}
	if err == nil {
		err = s.conditions.Require(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("s3object: check the right to write %s: %w", s.place(key), err)
	}
	return nil
}

func (s *Store) askForRight(ctx context.Context, key string) error {
	_, err := s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket:   &s.bucket,
		Key:      aws.String(s.prefix + key),
		UploadId: aws.String("tenure-asks-whether-it-may-write"),
		// Some policies demand a condition.
		IfMatch: aws.String(header(noVersion, s.form.isBare())),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{
			{ETag: aws.String(string(noVersion)), PartNumber: aws.Int32(1)},
		}},
	}, once)
	if err == nil {
		return nil
	}
	switch a := look(err); {
	case a.status == 0:
		return unanswered(err)
	case a.denied():
		return s.explain(writing, err)
	}
	return nil
}

// denied reports whether S3 itself refuses this user: a proxy that lets no POST pass answers 403 as
// well, but with another code.
func (a answer) denied() bool {
	return a.code == "AccessDenied" || slices.ContainsFunc(remedies, func(r remedy) bool {
		return r.denied && slices.Contains(r.codes, a.code)
	})
}
