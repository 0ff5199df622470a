package s3lect

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/driver"
)

var errNoData = errors.New("s3lect: a store cannot hold an empty object")

// ToStorage returns S3lect's view of a store, so that S3lect itself can elect over any of Tenure's.
// It is nil if the store is. The result is an ETagStorage.
//
// An ETag is a version. PutIfMatch with the empty ETag reads first, because a store may name an
// absence. Empty data and more than driver.MaxValue bytes are refused. Errors of the store other
// than S3lect's two are passed on.
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
