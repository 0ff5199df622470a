package s3object

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
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
			return driver.Entry{Floor: floor(seen.date()), Ceiling: latest}, nil
		}
		return driver.Entry{}, err
	}
	defer func() { _ = out.Body.Close() }()
	e := driver.Entry{Version: version(out.ETag), Ceiling: latest}
	if e.Version == "" {
		return driver.Entry{}, errNoETag
	}
	date, _ := middleware.GetServerTime(out.ResultMetadata)
	e.Floor = floor(date)
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

// latest is in the year 2109, in milliseconds: no candidate takes a term above it, also where a
// server's clock is far behind that of others, such as at 1970.
const latest = 1 << 42

// floor returns the server's clock in milliseconds, 0 if it is not known. A Date is cut off to
// whole seconds. That does no harm: of two Dates a second apart, the later is above the earlier by
// 1,000, far more terms than begin in a second.
func floor(date time.Time) uint64 {
	if date.IsZero() {
		return 0
	}
	return uint64(max(0, date.UnixMilli()))
}
