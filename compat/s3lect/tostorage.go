package s3lect

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/driver"
)

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
