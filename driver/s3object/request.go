package s3object

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
)

// errNoETag leaves the outcome of a write open: it was accepted, but its version cannot be named.
var errNoETag = errors.New("the answer has no ETag, so there is nothing to go by: a proxy may remove it; " +
	"let it pass, or go past the proxy")

// once makes a call one attempt, and as plain as all servers take it, with any settings of the
// client.
func once(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	o.DisableLogOutputChecksumValidationSkipped = true
}

// condition is the condition of a write: the object has this version, or there is none.
type condition struct {
	prev driver.Version
	bare bool
}

func (c condition) set(in *s3.PutObjectInput) {
	if c.prev == "" {
		in.IfNoneMatch = aws.String("*")
		return
	}
	in.IfMatch = aws.String(header(c.prev, c.bare))
}

// put writes an object under a condition. Its error is the client library's. After its return, the
// library reads nothing more of the value.
func (s *Store) put(ctx context.Context, key string, c condition, value []byte) (driver.Version, error) {
	in := &s3.PutObjectInput{
		Bucket:        &s.bucket,
		Key:           aws.String(s.prefix + key),
		Body:          bytes.NewReader(value),
		ContentLength: aws.Int64(int64(len(value))),
		ContentType:   aws.String("application/json"),
	}
	c.set(in)
	out, err := s.client.PutObject(ctx, in, once)
	if err != nil {
		return "", err
	}
	v := version(out.ETag)
	if v == "" {
		return "", errNoETag
	}
	return v, nil
}

// get reads an object. Its error is the client library's. An object that is missing, or hidden by a
// delete marker, is an absent entry.
func (s *Store) get(ctx context.Context, key string) (driver.Entry, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key)}, once)
	if err != nil {
		if seen := look(err); seen.missing() {
			return driver.Entry{Floor: object.Floor(seen.date()), Ceiling: object.Latest}, nil
		}
		return driver.Entry{}, err
	}
	defer func() { _ = out.Body.Close() }()
	e := driver.Entry{Version: version(out.ETag), Ceiling: object.Latest}
	if e.Version == "" {
		return driver.Entry{}, errNoETag
	}
	date, _ := middleware.GetServerTime(out.ResultMetadata)
	e.Floor = object.Floor(date)
	// One byte too many is enough for the reader to see that this is not a record.
	e.Value, err = io.ReadAll(io.LimitReader(out.Body, driver.MaxValue+1))
	if err != nil {
		return driver.Entry{}, &brokenAnswerError{err}
	}
	return e, nil
}

// brokenAnswerError is an answer that ended too early.
type brokenAnswerError struct{ cause error }

func (e *brokenAnswerError) Error() string { return "the answer broke off: " + e.cause.Error() }
func (e *brokenAnswerError) Unwrap() error { return e.cause }

// answer describes the answer to a failed request.
type answer struct {
	status int // 0: there was no answer
	code   string
	header http.Header
}

func look(err error) answer {
	var a answer
	var api smithy.APIError
	if errors.As(err, &api) {
		a.code = api.ErrorCode()
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil && response.Response.Response != nil {
		a.status, a.header = response.Response.StatusCode, response.Response.Header
	}
	return a
}

// missing reports whether there is no object in an existing bucket. A 404 of any other kind may be
// a proxy's.
func (a answer) missing() bool {
	return a.status == http.StatusNotFound && (a.code == "NoSuchKey" || a.header.Get("X-Amz-Delete-Marker") == "true")
}

// unmet reports whether the version was not the expected one, as far as the server understood it.
func (a answer) unmet() bool { return a.status == http.StatusPreconditionFailed }

// contended reports whether another write to the same object is under way, and goes first.
func (a answer) contended() bool {
	return a.status == http.StatusConflict && (a.code == "ConditionalRequestConflict" || a.code == "OperationAborted")
}

// conflict reports whether this write was refused because of another one, or of a removal.
func (a answer) conflict() bool { return a.unmet() || a.contended() || a.missing() }

// busy reports whether the server wants fewer requests, and has not looked at this one.
func (a answer) busy() bool { return a.status == http.StatusTooManyRequests || a.code == "SlowDown" }

// date returns the server's clock, zero if the answer has none.
func (a answer) date() time.Time {
	t, _ := http.ParseTime(a.header.Get("Date"))
	return t
}

// purpose is the kind of a request, for the remedy in its error.
type purpose int

const (
	reading purpose = iota
	writing
	listing
	checking // the conditions of writes
)

// explain turns an error of the client library into one of the contract, with the remedy for an
// operator.
func (s *Store) explain(d purpose, err error) error {
	a := look(err)
	switch {
	case d == writing && a.conflict():
		return fmt.Errorf("%w (%d %s)", driver.ErrConflict, a.status, a.code)
	case a.status == 0:
		return unanswered(err)
	}
	for _, r := range remedies {
		if !r.fits(a) {
			continue
		}
		text := r.text(s, d, a)
		if r.denied {
			return fmt.Errorf("%w: %s: %w", driver.ErrDenied, text, err)
		}
		return fmt.Errorf("%s: %w", text, err)
	}
	return err
}

// unanswered distinguishes a request that was never made from one that may have arrived.
func unanswered(err error) error {
	var sent *smithyhttp.RequestSendError
	var garbled *smithy.DeserializationError
	var cancelled *smithy.CanceledError
	var broken *brokenAnswerError
	if errors.Is(err, errNoETag) || errors.As(err, &broken) || errors.As(err, &sent) || errors.As(err, &garbled) || errors.As(err, &cancelled) {
		return err
	}
	return fmt.Errorf("nothing could be sent; check that there are credentials (AWS_ACCESS_KEY_ID and "+
		"AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role): %w", err)
}

// signingAnew returns a client like the given one that signs with the present secret. The library's
// own signer derives its key once a day for each access key, so it would sign with the old secret
// after a secret has been replaced. AWS replaces access keys instead, but the users of other
// servers keep their names. A signer of the caller's own stays.
func signingAnew(client *s3.Client) *s3.Client {
	o := client.Options()
	if _, usual := o.HTTPSignerV4.(*v4.Signer); !usual {
		return client
	}
	o.HTTPSignerV4 = &signer{options: func(s *v4.SignerOptions) {
		s.Logger, s.LogSigning = o.Logger, o.ClientLogMode.IsSigning()
		s.DisableURIPathEscaping = true // S3 requires this
	}}
	o.AuthSchemes = nil // they hold the other signer
	return s3.New(o)
}

// signer uses another signer of the library for each secret.
type signer struct {
	options func(*v4.SignerOptions)
	last    atomic.Pointer[secretSigner]
}

type secretSigner struct {
	*v4.Signer
	secret string
}

// SignHTTP signs a request.
func (s *signer) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request,
	hash, service, region string, at time.Time, opts ...func(*v4.SignerOptions)) error {
	now := s.last.Load()
	if now == nil || now.secret != c.SecretAccessKey {
		now = &secretSigner{v4.NewSigner(s.options), c.SecretAccessKey}
		s.last.Store(now)
	}
	return now.Signer.SignHTTP(ctx, c, r, hash, service, region, at, opts...)
}

// version is an ETag without its quotes. A proxy that compresses marks it as weak; the server does
// not know that mark.
func version(etag *string) driver.Version {
	if etag == nil {
		return ""
	}
	return driver.Version(strings.Trim(strings.TrimPrefix(*etag, "W/"), `"`))
}

// header returns a version in its form for If-Match.
func header(v driver.Version, bare bool) string {
	if bare {
		return string(v)
	}
	return `"` + string(v) + `"`
}

// form is how versions are written in If-Match: with quotes as the standard says, or bare. All keys
// use the same form.
type form struct {
	mu   sync.Mutex
	bare bool
	// a swap was applied in this form, or the server ignores the other one
	settled bool
	proving bool                      // the other one is being tried
	doubts  map[string]driver.Version // by key, the version from which the last swap was refused
}

// maxDoubts bounds the memory for keys that are not read again.
const maxDoubts = 1024

func (f *form) isBare() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bare
}

// applied keeps the form: it works.
func (f *form) applied(bare bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bare, f.settled, f.doubts = bare, true, nil
}

// refused records a swap that was refused because of the version. The version may have changed.
func (f *form) refused(key string, prev driver.Version, bare bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled || bare != f.bare {
		return
	}
	if f.doubts == nil || len(f.doubts) >= maxDoubts {
		f.doubts = map[string]driver.Version{}
	}
	f.doubts[key] = prev
}

// doubt returns the version from which the last swap of a key was refused, if the form may be the
// reason. A read must ask before it is sent: the answer to an earlier one may show that version
// rightly.
func (f *form) doubt(key string) driver.Version {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.doubts[key]
}

// begin settles a doubt by the version that a later read showed. If the refusal had no other
// reason, it returns the other form, which the caller tries; only one caller at a time gets it.
func (f *form) begin(key string, doubt, now driver.Version) (other, try bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.doubts[key] == doubt {
		delete(f.doubts, key)
	}
	if f.settled || f.proving || doubt != now {
		return false, false
	}
	f.proving = true
	return !f.bare, true
}

// end takes the result of the trial.
func (f *form) end(other bool, result treatment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proving = false
	switch {
	case f.settled:
	case result == heeded:
		f.bare, f.doubts = other, nil
	case result == ignored:
		f.settled = true
	}
}

// treatment is how a server treats a condition that is not met.
type treatment int

const (
	unclear treatment = iota
	heeded
	ignored
)

// resolve is called after a read that was sent after a swap had been refused. If the cell still has
// the version that the swap expected, the server did not understand the condition, and the other
// form may be the right one. Since a server may ignore conditions that it does not understand, that
// form is used only if it can refuse.
func (s *Store) resolve(ctx context.Context, key string, doubt, now driver.Version) {
	other, try := s.form.begin(key, doubt, now)
	if !try {
		return
	}
	s.form.end(other, s.try(ctx, object.Folder(key)+object.ConditionsName, condition{now, other}))
}

// try returns how the server treats a condition that the object does not meet. It first makes sure
// that the object exists.
func (s *Store) try(ctx context.Context, key string, c condition) treatment {
	if result, _ := s.violate(ctx, key, condition{}); result == unclear {
		return unclear
	}
	result, _ := s.violate(ctx, key, c)
	return result
}

// errTorn is a read that shows the ETag of one state and the content of another. With the later
// ETag it would be dangerous: a member that took the content for the present state could replace a
// state that it never saw.
var errTorn = errors.New("the server answered with the ETag of one state of the object and the content of another; read again")

// digests finds such reads where ETags are MD5 sums of the content, as they are on most servers;
// with other ETags it cannot. The answers show which kind the server uses.
type digests struct {
	mu  sync.Mutex
	md5 bool              // sums were seen
	odd map[string]oddity // by key: the last read that did not fit
	not map[string]bool   // keys of objects whose ETags were found not to be sums
}

// oddity is a read whose ETag is not the sum of its content.
type oddity struct {
	version driver.Version
	sum     string
	at      time.Time
}

// steady is how long a server must give the same odd answer before the store believes that its
// ETags are no longer sums, as after a change of the bucket's encryption. A torn read is over in
// milliseconds.
const steady = 200 * time.Millisecond

// learn records an ETag that is the sum of its content.
func (d *digests) learn(key string, v driver.Version, value []byte) (fits bool) {
	if string(v) != digest(value) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.md5 = true
	delete(d.odd, key)
	delete(d.not, key)
	return true
}

// check returns errTorn for a read that does not show a single state, as far as it can tell.
func (d *digests) check(key string, e driver.Entry) error {
	if e.Absent() || len(e.Value) > driver.MaxValue || d.learn(key, e.Version, e.Value) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.md5 || d.not[key] {
		return nil
	}
	last, known := d.odd[key]
	now := time.Now()
	if known && last.version == e.Version && last.sum == digest(e.Value) {
		if now.Sub(last.at) >= steady {
			if d.not == nil || len(d.not) >= maxDoubts {
				d.not = map[string]bool{}
			}
			d.not[key] = true
			return nil
		}
		return errTorn
	}
	if d.odd == nil || len(d.odd) >= maxDoubts {
		d.odd = map[string]oddity{}
	}
	d.odd[key] = oddity{e.Version, digest(e.Value), now}
	return errTorn
}

func digest(value []byte) string {
	sum := md5.Sum(value)
	return hex.EncodeToString(sum[:])
}
