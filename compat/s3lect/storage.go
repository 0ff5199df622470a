package s3lect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
)

var (
	// ErrStorageNotFound is returned by Storage.Get, wrapped or plain, if there is no such object.
	ErrStorageNotFound = errors.New("object not found")
	// ErrStoragePrecondition is returned by Storage.PutIfMatch, wrapped or plain, if the object has
	// another ETag.
	ErrStoragePrecondition = errors.New("precondition failed")
)

// Storage is S3lect's view of an object store. Its methods may be called from many goroutines.
type Storage interface {
	// Get returns the contents of the object and its ETag, or an error that wraps
	// ErrStorageNotFound if there is none.
	Get(ctx context.Context, key string) (data []byte, etag string, err error)
	// PutIfMatch writes the object if its ETag is the given one; the empty ETag means that it must
	// not exist. It returns an error that wraps ErrStoragePrecondition if that does not hold. After
	// any other error the object may have been written.
	PutIfMatch(ctx context.Context, key string, data []byte, etag string) error
}

// ETagStorage is a Storage that also returns the ETag of its write. With a plain Storage each write
// costs one more read.
type ETagStorage interface {
	Storage
	// PutIfMatchETag is PutIfMatch and returns the new ETag.
	PutIfMatchETag(ctx context.Context, key string, data []byte, etag string) (newETag string, err error)
}

const (
	// minLease is as for object storage: two attempts of two round trips, each some hundred
	// milliseconds long.
	minLease = 2 * time.Second
	// maxKey is S3's limit in bytes.
	maxKey = 1024
)

var (
	errNoETag = errors.New("the storage gave no ETag")
	// errOvertaken: the write was applied, but replaced by another one before its ETag was read.
	errOvertaken = errors.New("written, and no longer there when its ETag was asked for")
)

// FromStorage returns a store over a storage that was written for S3lect. It returns nil for a nil
// storage.
//
// A version is an ETag. PutIfMatch does not return the new one, so the store reads the object after
// each write, unless the storage is an ETagStorage. The storage must be atomic among all writers,
// and must refuse a write whose ETag is not the present one. The store does not check that, as
// package s3object does, because such a storage may hold the lockfile alone. It classifies the
// storage's errors as driver.Store requires: ErrStoragePrecondition, and ErrStorageNotFound from a
// write, are conflicts; an error that wraps driver.ErrDenied stays one; all others leave the
// outcome open.
//
// Entries have no Floor, because such a storage has no clock or counter of its own. After the
// object was deleted, or S3lect has led, the next token is above the highest one that the elected
// candidate has itself seen. A candidate that has seen none begins at 1 again, even if other
// candidates have seen higher ones. Package s3object has a Floor. The shortest lease is 2 s.
//
// A call ends with its context even if the storage ignores the context.
func FromStorage(s Storage) driver.Store {
	if s == nil {
		return nil
	}
	return &storageStore{storage: s, calls: &abandon.Calls{}}
}

type storageStore struct {
	storage Storage
	calls   *abandon.Calls
}

var (
	_ driver.Bounded   = (*storageStore)(nil)
	_ driver.Inspector = (*storageStore)(nil)
)

func (s *storageStore) Read(ctx context.Context, key string) (driver.Entry, error) {
	if err := s.CheckKey(key); err != nil {
		return driver.Entry{}, err
	}
	e, err := abandon.Run(ctx, s.calls, func() (driver.Entry, error) { return s.get(ctx, key) }, abandon.NoUndo)
	if err != nil {
		return driver.Entry{}, fmt.Errorf("s3lect: read %s: %w", key, err)
	}
	return e, nil
}

func (s *storageStore) get(ctx context.Context, key string) (driver.Entry, error) {
	data, etag, err := s.storage.Get(ctx, key)
	switch {
	case errors.Is(err, ErrStorageNotFound):
		return driver.Entry{}, nil
	case err != nil:
		return driver.Entry{}, err
	case etag == "":
		return driver.Entry{}, errNoETag // as a version it would mean that the object is absent
	}
	return driver.Entry{Value: bytes.Clone(data), Version: driver.Version(etag)}, nil
}

func (s *storageStore) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := s.CheckKey(key); err != nil {
		return "", err
	}
	if len(value) > driver.MaxValue {
		return "", fmt.Errorf("s3lect: a value of %d bytes is longer than %d", len(value), driver.MaxValue)
	}
	own := bytes.Clone(value)
	etag, err := abandon.Run(ctx, s.calls, func() (string, error) { return s.put(ctx, key, own, string(prev)) }, abandon.NoUndo)
	if err != nil {
		return "", fmt.Errorf("s3lect: compare and swap %s: %w", key, err)
	}
	return driver.Version(etag), nil
}

// put writes and finds out the new ETag. If only the latter fails, the write may have been applied:
// the election finds that out by a read.
func (s *storageStore) put(ctx context.Context, key string, data []byte, etag string) (string, error) {
	if teller, ok := s.storage.(ETagStorage); ok {
		newETag, err := teller.PutIfMatchETag(ctx, key, data, etag)
		if err == nil && newETag == "" {
			err = errNoETag
		}
		return newETag, outcome(err, etag)
	}
	if err := s.storage.PutIfMatch(ctx, key, bytes.Clone(data), etag); err != nil {
		return "", outcome(err, etag)
	}
	e, err := s.get(ctx, key)
	switch {
	case err != nil:
		return "", fmt.Errorf("written, and its ETag is not known: %w", hideDenied(err))
	case !bytes.Equal(e.Value, data):
		return "", errOvertaken
	}
	return string(e.Version), nil
}

// outcome classifies the error of a write that expected an ETag. If the object is gone, its version
// is another one, too.
func outcome(err error, etag string) error {
	if errors.Is(err, ErrStoragePrecondition) || etag != "" && errors.Is(err, ErrStorageNotFound) {
		return fmt.Errorf("%w: %w", driver.ErrConflict, err)
	}
	return err
}

// hideDenied hides driver.ErrDenied in the error of a read after a write: the write itself was not
// refused.
func hideDenied(err error) error { return errors.New(err.Error()) }

// MinLease returns 2 s.
func (s *storageStore) MinLease() time.Duration { return minLease }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (s *storageStore) MaxLease() time.Duration { return driver.MaxLease }

// CheckKey returns an error unless the key is valid UTF-8 of 1 to 1024 bytes. The storage may
// refuse further keys.
func (s *storageStore) CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("s3lect: the key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("s3lect: a key of %d bytes is longer than %d", len(key), maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("s3lect: key %q is not valid UTF-8", key)
	}
	return nil
}

// Inspect returns the findings that hold for every Storage. It does not call the storage, because
// it could not remove its own writes.
func (s *storageStore) Inspect(ctx context.Context, _ time.Duration) ([]driver.Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return []driver.Finding{{
		Severity: driver.Warning,
		Setting:  "floor",
		Problem:  "the storage has no counter of its own, so tokens may start again at 1 when its object is deleted",
		Remedy:   "use package s3object, or never delete the object",
	}}, nil
}

// Keys returns an error that wraps errors.ErrUnsupported: a Storage cannot list its objects.
func (s *storageStore) Keys(context.Context) ([]string, error) {
	return nil, fmt.Errorf("s3lect: list the objects of a Storage: %w", errors.ErrUnsupported)
}

// CheckRights returns an error that wraps errors.ErrUnsupported: only a write shows the rights.
func (s *storageStore) CheckRights(context.Context, string) error {
	return fmt.Errorf("s3lect: check the right to write to a Storage: %w", errors.ErrUnsupported)
}

var errNoData = errors.New("s3lect: a store cannot hold an empty object")

// ToStorage returns a storage for S3lect over a store, so that S3lect itself can use any of
// Tenure's stores. It returns nil for a nil store. The result is an ETagStorage.
//
// An ETag is a version. PutIfMatch with the empty ETag reads first, because in some stores the
// absence of a value has a version, too. It refuses empty data and more than driver.MaxValue bytes.
// Conflicts and absent values become S3lect's two errors; all other errors are those of the store.
func ToStorage(s driver.Store) Storage {
	if s == nil {
		return nil
	}
	return storeStorage{s}
}

type storeStorage struct{ store driver.Store }

var _ ETagStorage = storeStorage{}

func (s storeStorage) Get(ctx context.Context, key string) ([]byte, string, error) {
	e, err := s.store.Read(ctx, key)
	if err != nil {
		return nil, "", err
	}
	if e.Absent() {
		return nil, "", fmt.Errorf("s3lect: get %s: %w", key, ErrStorageNotFound)
	}
	return e.Value, string(e.Version), nil
}

func (s storeStorage) PutIfMatch(ctx context.Context, key string, data []byte, etag string) error {
	_, err := s.PutIfMatchETag(ctx, key, data, etag)
	return err
}

func (s storeStorage) PutIfMatchETag(ctx context.Context, key string, data []byte, etag string) (string, error) {
	if len(data) == 0 {
		return "", errNoData
	}
	prev := driver.Version(etag)
	if etag == "" {
		e, err := s.store.Read(ctx, key)
		if err != nil {
			return "", err
		}
		if !e.Absent() {
			return "", fmt.Errorf("s3lect: put %s: %w", key, ErrStoragePrecondition)
		}
		prev = e.Version
	}
	v, err := s.store.CompareAndSwap(ctx, key, prev, data)
	if errors.Is(err, driver.ErrConflict) {
		return "", fmt.Errorf("%w: %w", ErrStoragePrecondition, err)
	}
	return string(v), err
}
