//go:build integration

package s3

import (
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// TestRealCheckRights: the check of the right to write changes nothing on any server, not even on
// servers that ignore the conditions of writes. With the right it succeeds.
func TestRealCheckRights(t *testing.T) {
	eachReal(t, s3d.Kinds(), func(t *testing.T, server *s3d.Server) {
		bucket, url := server.Bucket(t), server.URLs()[0]
		store := realStore(t, url, bucket)
		if _, err := store.CompareAndSwap(wait.Context(t), "cell", "", []byte("precious")); err != nil {
			t.Fatal(err)
		}
		before, err := store.Read(wait.Context(t), "cell")
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"cell", "absent"} {
			if err := store.CheckRights(wait.Context(t), key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		after, err := store.Read(wait.Context(t), "cell")
		if err != nil || after.Version != before.Version || string(after.Value) != "precious" {
			t.Errorf("the cell holds %q, version %q (%v)", after.Value, after.Version, err)
		}
		if e, err := store.Read(wait.Context(t), "absent"); err != nil || !e.Absent() || e.Version != "" {
			t.Errorf("what was absent holds %q (%v)", e.Value, err)
		}
	})
}
