package s3lect

import (
	"context"
	"errors"
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
