//go:build integration

package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// TestRealConformance runs alone, because it counts goroutines.
func TestRealConformance(t *testing.T) {
	eachReal(t, soundServers(), func(t *testing.T, server *s3d.Server) {
		bucket := server.Bucket(t)
		drivertest.Run(t, func(t testing.TB) drivertest.Harness { return realHarness(t, server, bucket) })
	})
}

// TestRealElections has leases that are longer than the stalls of a busy machine, and so takes
// minutes.
func TestRealElections(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes: without -short")
	}
	eachReal(t, soundServers(), func(t *testing.T, server *s3d.Server) {
		bucket := server.Bucket(t)
		electiontest.Run(t, func(t testing.TB) drivertest.Harness { return realHarness(t, server, bucket) })
	})
}

// realHarness has the peer at another process, if there is one.
func realHarness(t testing.TB, server *s3d.Server, bucket string) drivertest.Harness {
	r, way := realRelay(t, server.URLs()[0])
	peer := lastOf(server.URLs())
	operator := s3d.Client(peer)
	remove := func(ctx context.Context, key string) error {
		_, err := operator.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: aws.String(key)})
		return err
	}
	return drivertest.Harness{
		Store:  heldBy(server.Kind, realStore(t, way, bucket)),
		Peer:   realStore(t, peer, bucket),
		Denied: realStore(t, peer, bucket, stranger(server.Kind)),
		Delete: remove,
		Purge:  remove,
		Cut: func() func() {
			r.Blackhole()
			return r.Heal
		},
		FloorTick: time.Second, ContentVersions: true, Lease: 30 * time.Second, Patience: wait.Left(),
	}
}

// heldBy defines which keys a server can hold at the same time.
func heldBy(k s3d.Kind, s *s3object.Store) driver.Store {
	if k == s3d.MinIO {
		return s
	}
	return flatKeys{s}
}

// flatKeys refuses keys with slashes. versitygw keeps an object as a file of the same path, so that
// "a" and "a/b" exclude each other. TestRealPaths checks its answer then.
type flatKeys struct{ *s3object.Store }

func (f flatKeys) CheckKey(key string) error {
	if strings.Contains(key, "/") {
		return fmt.Errorf("key %q: a part of it may be another's file", key)
	}
	return f.Store.CheckKey(key)
}

// TestRealPaths: if "a" is a file, "a/b" cannot exist. That must not look like another candidate's
// success, and must harm neither.
func TestRealPaths(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Versity}, func(t *testing.T, server *s3d.Server) {
		ctx, store := wait.Context(t), realStore(t, server.URLs()[0], server.Bucket(t))
		for _, pair := range [][2]string{{"file", "file/below"}, {"folder/file", "folder"}} {
			version, err := store.CompareAndSwap(ctx, pair[0], "", []byte("first"))
			if err != nil {
				t.Fatal(err)
			}
			if e, err := store.Read(ctx, pair[1]); err != nil || !e.Absent() {
				t.Errorf("%q beside %q holds %q (%v), want nothing", pair[1], pair[0], e.Value, err)
			}
			_, err = store.CompareAndSwap(ctx, pair[1], "", []byte("second"))
			t.Logf("%q beside %q: %v", pair[1], pair[0], err)
			if err == nil || errors.Is(err, driver.ErrConflict) {
				t.Errorf("%q beside %q: %v, want an error that is no conflict", pair[1], pair[0], err)
			}
			if e, err := store.Read(ctx, pair[0]); err != nil || e.Version != version {
				t.Errorf("%q holds %q now (%v)", pair[0], e.Value, err)
			}
		}
	})
}

// stranger has no rights. MinIO does not know this user.
func stranger(k s3d.Kind) func(*s3.Options) {
	if k == s3d.MinIO {
		return s3d.As("nobody", s3d.Secret)
	}
	return s3d.As(s3d.Stranger, s3d.StrangerSecret)
}
