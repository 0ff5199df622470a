// Package s3object holds elections in a bucket of S3 or of a server that speaks its protocol. Use
// it where there is a bucket and no other store; with package peer, a failover is as fast as on
// NATS.
//
//	store, err := s3object.FromEnvironment(ctx, "my-bucket", s3object.WithPrefix("elections"))
//
// # What it relies on
//
// A cell is one object, and its version is the object's ETag without quotes. A compare-and-swap is
// one PutObject, with If-None-Match: * if there was no object, and with If-Match if there was one.
// Some servers ignore these headers. A store finds that out before its first write, and writes
// nothing there: see Conditions. Other servers check them and write in two steps, so that two of
// twenty writers win. [Store.Inspect] tests that with races; run it once against every server that
// is not S3 itself.
//
// An ETag is often a hash of the content. That is enough, because elections never write the same
// bytes twice. The first record of a new object is the exception: a proxy may deliver the request
// that created it again after a removal, with the same ETag. So elections do not rely on that ETag.
//
// The floor of the terms is the server's clock in milliseconds, from the Date of its answers. Date
// has whole seconds, so the floor can be a second late: it does not cover a record that is removed
// within the second in which its term began. That does no harm, because elections wait out a lease
// after a removal, which is at least 2 s. For the same reason the clocks of several front ends of
// one store may differ by up to the lease minus 1 s.
//
// # What it costs
//
// A renewal is one PUT, and a read of the election one GET. With n followers, that is 86,400 s /
// Renew PUTs and at most n * 86,400 s / Poll GETs a day. Refused writes are billed, too. The check
// of conditions takes three requests in the life of a Store. An inspection takes some 1,130
// requests, and 1,030 of them are PUTs: about half a cent at S3's list price.
//
// # Rights
//
// A candidate needs these, and an observer the first two:
//
//	s3:GetObject     on arn:aws:s3:::BUCKET/PREFIX/*
//	s3:ListBucket    on arn:aws:s3:::BUCKET, perhaps with the condition s3:prefix = PREFIX/*
//	s3:PutObject     on arn:aws:s3:::BUCKET/PREFIX/*
//
// If the rights are for single objects, they must include the object .tenure-probe-conditions
// beside those of the elections: see Conditions.
//
// Elections list nothing, but without s3:ListBucket S3 answers a read of a missing object by 403
// instead of 404. The store does not take that for absence: it returns driver.ErrDenied and names
// this right. [Store.Inspect] also uses s3:DeleteObject on BUCKET/PREFIX/.tenure-probe-* and
// s3:GetBucketVersioning on BUCKET, and checks less without them.
//
// # Calls
//
// A call is one request, except as below under Conditions and Quotes. The client library's retries
// are off: a retry of a request that was applied and lost its answer would come back as a conflict
// with itself. Checksums are sent and checked only where S3 requires them, because other servers
// refuse them. A call ends with its context. Without a deadline it waits as long as the server
// takes.
//
// # Conditions
//
// Before its first write, a [Store] checks that its server refuses writes whose conditions are not
// met: it creates an object twice with If-None-Match: *, and replaces it once with the If-Match of
// an ETag that no object has. If the object exists, a read takes the place of the second of these
// three writes. The object is .tenure-probe-conditions in the folder of the election, and stays
// there. A candidate that follows another one makes this check early, in CheckRights; a process
// that only reads does not make it.
//
//   - If the server ignores a condition, every write returns driver.ErrUnfit, and no candidate is
//     elected.
//   - If the right to the object is missing, every write returns driver.ErrDenied. There is no way
//     around the check.
//   - If the server does not answer, or answers that it is busy, the outcome of the write is open.
//     The next write goes on with the check where it ended.
//
// All elections of a Store share one check, so use one Store for all elections of a bucket. The
// check is a part of the call that makes it. It is not repeated in the life of the Store: it does
// not notice if the server is replaced later by one that ignores conditions.
//
// New refuses the addresses of Google Cloud Storage, which is reported to ignore these conditions.
//
// # Quotes
//
// Ceph's gateway and some services accept only an ETag without quotes in If-Match, and refuse each
// one with quotes. A store finds out by itself, after a swap was refused and a later read shows the
// very version that the swap expected. Then the store sends a PUT for .tenure-probe-conditions with
// the other form and a condition that is not met. If the server refuses the PUT, it understands the
// other form, and the store uses that form from then on, for all keys. If the server applies the
// PUT, it ignores a form that it does not understand: writes would be unconditional, so the store
// keeps its first form. Once a swap was applied in one form, the store also keeps that form.
// [WithUnquotedETags] saves the detour.
//
// # Limits
//
// The shortest lease is 2 s. Some services allow one write a second for each object, which is
// enough. Services without conditional writes cannot hold elections; if they answer 501, the error
// says so. An object's name, with the prefix, may have 1,024 bytes, 984 up to its last slash, and
// 255 in each part between slashes. A bucket with versions keeps each renewal as a version, and one
// with Object Lock costs too much for elections.
package s3object

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
)

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Store is the elections of one bucket under one prefix. It must be made by New or FromEnvironment.
// Its methods may be called from many goroutines. It does not need to be closed.
type Store struct {
	client *s3.Client
	bucket string
	prefix string // empty, or with a slash at its end
	region string
	form   form
	sums   digests

	conditions *object.Conditions
}

// New returns the elections in a bucket, over a client that stays the caller's. Each call overrides
// only the client's settings of retries and checksums, and signs with the secret that the provider
// of credentials returns at that moment. Of the options only WithPrefix and WithUnquotedETags have
// an effect here. New sends no request.
//
// It returns an error if the client is nil or has no region, which signatures need, or if the
// bucket's name or the prefix is not valid. It returns one that wraps driver.ErrUnfit if the
// client's endpoint is Google Cloud Storage, which is reported to ignore the conditions of writes.
func New(client *s3.Client, bucket string, opts ...Option) (*Store, error) {
	s, err := newStore(client, bucket, settle(opts))
	if err != nil {
		return nil, fmt.Errorf("s3object: %w", err)
	}
	return s, nil
}

func newStore(client *s3.Client, bucket string, set settings) (*Store, error) {
	if client == nil {
		return nil, errors.New("the client is nil")
	}
	if bucket == "" || strings.ContainsFunc(bucket, object.Control) || strings.Contains(bucket, " ") {
		return nil, fmt.Errorf("bucket %q: this is no name of a bucket", bucket)
	}
	prefix, err := names.Prefix(set.prefix)
	if err != nil {
		return nil, err
	}
	if err := checkService(client.Options().BaseEndpoint); err != nil {
		return nil, err
	}
	region := client.Options().Region
	if region == "" {
		return nil, fmt.Errorf("bucket %s: %w", bucket, errNoRegion)
	}
	s := &Store{client: signingAnew(client), bucket: bucket, prefix: prefix, region: region}
	s.form.bare = set.bare
	s.conditions = s.newConditions()
	return s, nil
}

// Read returns the state of the cell. The caller may keep the value; if the object is longer than
// driver.MaxValue, the value is its first driver.MaxValue + 1 bytes. Floor is the server's clock in
// milliseconds, cut off to whole seconds.
//
// It returns an error that wraps driver.ErrDenied if rights or valid credentials are missing, the
// error of CheckKey, and any other error if the state is not known, for example because the server
// answered with the ETag of one state and the content of another. The text names a missing bucket,
// a wrong region or a wrong clock.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := s.read(ctx, key)
	if err != nil {
		return driver.Entry{}, fmt.Errorf("s3object: read %s: %w", s.place(key), err)
	}
	return e, nil
}

func (s *Store) read(ctx context.Context, key string) (driver.Entry, error) {
	if err := object.Ready(ctx, s, key); err != nil {
		return driver.Entry{}, err
	}
	doubt := s.form.doubt(key)
	e, err := s.get(ctx, key)
	if err != nil {
		return driver.Entry{}, s.explain(reading, err)
	}
	if err := s.sums.check(key, e); err != nil {
		return driver.Entry{}, err
	}
	if doubt != "" {
		s.resolve(ctx, key, doubt, e.Version)
	}
	return e, nil
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. The caller may reuse the value.
//
// It returns an error that wraps driver.ErrConflict if the version was different, is gone, or is
// about to be lost to another write (409); one that wraps driver.ErrDenied if rights or valid
// credentials are missing; one that wraps driver.ErrUnfit if the server ignores the conditions of
// writes, when the cell was not written; and the error of CheckKey, when nothing was sent. Any
// other error leaves open whether the value was or will be written.
//
// Before its first write, a store checks whether the server heeds conditions: see Conditions in the
// package comment.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	v, err := s.swap(ctx, key, prev, value)
	if err != nil {
		return "", fmt.Errorf("s3object: compare and swap %s: %w", s.place(key), err)
	}
	return v, nil
}

func (s *Store) swap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := object.Ready(ctx, s, key); err != nil {
		return "", err
	}
	if err := s.conditions.Require(ctx, key); err != nil {
		return "", err
	}
	bare := s.form.isBare()
	v, err := s.put(ctx, key, condition{prev, bare}, value)
	switch {
	case prev == "":
	case err == nil:
		s.form.applied(bare)
	case look(err).unmet():
		s.form.refused(key, prev, bare)
	}
	if err != nil {
		return "", s.explain(writing, err)
	}
	s.sums.learn(key, v, value)
	return v, nil
}

// place formats a key for a message.
func (s *Store) place(key string) string {
	return fmt.Sprintf("%.200q in bucket %s", s.prefix+key, s.bucket)
}

// MinLease returns 2 s: a request usually takes some 50 ms, and now and then a second.
func (s *Store) MinLease() time.Duration { return 2 * time.Second }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (s *Store) MaxLease() time.Duration { return driver.MaxLease }

// CheckKey returns an error unless the key can be the rest of an object's name: UTF-8 without
// control characters, at most 1,024 bytes together with the prefix, and at most 984 up to the last
// slash. Slashes may divide it into parts of at most 255 bytes, because some servers keep objects
// as files. No part may be empty, "." or "..", since servers and proxies resolve such parts. The
// last part may not begin with .tenure-probe-: such objects are for the store's own checks.
func (s *Store) CheckKey(key string) error { return names.CheckKey(s.prefix, key) }

// Option changes the behavior of New and FromEnvironment.
type Option func(*settings)

type settings struct {
	prefix    string
	bare      bool
	endpoint  string
	region    string
	pathStyle bool
}

func settle(opts []Option) settings {
	var set settings
	for _, opt := range opts {
		opt(&set)
	}
	return set
}

// WithPrefix puts all objects under a prefix, as into a folder. "a/b", "/a/b" and "a/b/" mean the
// same. The object's name is the prefix, a slash and the key, so key "b/x" under "a" is key "x"
// under "a/b".
func WithPrefix(prefix string) Option {
	return func(set *settings) { set.prefix = prefix }
}

// WithUnquotedETags begins with ETags without quotes in If-Match, as Ceph's gateway needs them.
// Without this option a store finds out by itself, after the first swap that the server refuses
// although the version is right.
func WithUnquotedETags() Option {
	return func(set *settings) { set.bare = true }
}

// WithEndpoint sets, for FromEnvironment, the URL of a server other than S3 itself, such as
// http://127.0.0.1:9000. The bucket is then addressed by path, as such servers expect.
func WithEndpoint(url string) Option {
	return func(set *settings) { set.endpoint = url }
}

// WithRegion sets, for FromEnvironment, the region of the bucket. It overrides the environment and
// the configuration files.
func WithRegion(region string) Option {
	return func(set *settings) { set.region = region }
}

// WithPathStyle makes FromEnvironment address the bucket by path (host/bucket/key) instead of by
// host (bucket.host/key). With WithEndpoint, or an endpoint in the configuration, that is always
// so.
func WithPathStyle() Option {
	return func(set *settings) { set.pathStyle = true }
}

// names are the rules for names of objects. Servers that keep objects as files or folders, such as
// MinIO and versitygw, have the limit on a part between slashes.
var names = object.Names{MaxPart: 255}

// Keys returns the sorted keys of all objects under the prefix, by one request for each thousand.
// It needs s3:ListBucket. It leaves out objects without content, and names that CheckKey refuses.
// Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	var all []string
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.prefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, once)
		if err != nil {
			return nil, fmt.Errorf("s3object: list the objects of %s: %w", s.place(""), s.explain(listing, err))
		}
		for _, o := range page.Contents {
			key := strings.TrimPrefix(aws.ToString(o.Key), s.prefix)
			if aws.ToInt64(o.Size) > 0 && s.CheckKey(key) == nil {
				all = append(all, key)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
