//go:build integration

package s3

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// TestRealInspectPasses: users ignore a warning that always appears.
func TestRealInspectPasses(t *testing.T) {
	eachReal(t, s3d.Sound(), func(t *testing.T, server *s3d.Server) {
		for _, f := range inspectReal(t, server) {
			t.Log(f)
			if f.Severity == driver.Unsafe {
				t.Errorf("unsafe is only what can make two leaders, and %s cannot", server.Kind)
			}
		}
	})
}

// TestRealInspectWarns covers servers that ignore conditions, and one that checks them and then
// writes.
func TestRealInspectWarns(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Rclone, s3d.Azurite, s3d.Stub}, func(t *testing.T, server *s3d.Server) {
		if server.Kind == s3d.Azurite {
			sequentially(t, server)
		}
		unsafe := 0
		for _, f := range inspectReal(t, server) {
			t.Log(f)
			if f.Severity == driver.Unsafe {
				unsafe++
			}
		}
		if unsafe == 0 {
			t.Errorf("two can lead on %s at once, and no finding reports it", server.Kind)
		}
	})
}

func inspectReal(t *testing.T, server *s3d.Server) []driver.Finding {
	t.Helper()
	bucket := server.Bucket(t)
	found, err := s3d.NewStore(t, server.URLs()[0], bucket).Inspect(wait.Context(t), 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	leavesNothing(t, server, bucket)
	return found
}

// leavesNothing requires that an inspection removed its objects. The stub cannot list.
func leavesNothing(t *testing.T, server *s3d.Server, bucket string) {
	t.Helper()
	if server.Kind == s3d.Stub {
		return
	}
	all, err := s3d.Client(server.URLs()[0]).ListObjectsV2(wait.Context(t), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all.Contents {
		t.Errorf("the inspection left %q behind", aws.ToString(o.Key))
	}
}

// sequentially requires that a server honors conditions while no other client writes, so that only
// a race shows the fault.
func sequentially(t *testing.T, server *s3d.Server) {
	t.Helper()
	ctx, store := wait.Context(t), s3d.NewStore(t, server.URLs()[0], server.Bucket(t))
	first, err := store.CompareAndSwap(ctx, "cell", "", []byte("first"))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if _, err := store.CompareAndSwap(ctx, "cell", "", []byte("again")); !errors.Is(err, driver.ErrConflict) {
		t.Fatalf("a second create: %v, want a conflict", err)
	}
	if _, err := store.CompareAndSwap(ctx, "cell", first, []byte("second")); err != nil {
		t.Fatalf("swap: %v", err)
	}
	if _, err := store.CompareAndSwap(ctx, "cell", first, []byte("late")); !errors.Is(err, driver.ErrConflict) {
		t.Fatalf("a late swap: %v, want a conflict", err)
	}
}
