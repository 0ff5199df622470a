package s3object

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
)

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Lister    = (*Store)(nil)
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

	conditions conditions
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
	if bucket == "" || strings.ContainsFunc(bucket, forbidden) || strings.Contains(bucket, " ") {
		return nil, fmt.Errorf("bucket %q: this is no name of a bucket", bucket)
	}
	prefix, err := normalize(set.prefix)
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
	if err := s.ready(ctx, key); err != nil {
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
	if err := s.ready(ctx, key); err != nil {
		return "", err
	}
	if err := s.requireConditions(ctx, key); err != nil {
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

// ready refuses requests that must not be sent.
func (s *Store) ready(ctx context.Context, key string) error {
	if err := s.CheckKey(key); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// place formats a key for a message.
func (s *Store) place(key string) string {
	return fmt.Sprintf("%.200q in bucket %s", s.prefix+key, s.bucket)
}

// MinLease returns 2 s: a request usually takes some 50 ms, and now and then a second.
func (s *Store) MinLease() time.Duration { return 2 * time.Second }

// CheckKey returns an error unless the key can be the rest of an object's name: UTF-8 without
// control characters, at most 1,024 bytes together with the prefix, and at most 984 up to the last
// slash. Slashes may divide it into parts of at most 255 bytes, because some servers keep objects
// as files. No part may be empty, "." or "..", since servers and proxies resolve such parts. The
// last part may not begin with .tenure-probe-: such objects are for the store's own checks.
func (s *Store) CheckKey(key string) error {
	if strings.HasPrefix(strings.TrimPrefix(key, folder(key)), probePrefix) {
		return fmt.Errorf("key %q: objects whose names begin with %s are for the store's own checks", key, probePrefix)
	}
	return checkName("key", s.prefix, key)
}
