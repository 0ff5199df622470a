package s3d

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"
)

// installPatience is how long the tools of one kind may take to be fetched and compiled.
const installPatience = 20 * time.Minute

// Start runs a kind for the length of a test, in a directory of its own. A server that cannot be
// had fails the test.
func Start(t testing.TB, k Kind) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), installPatience)
	defer cancel()
	s, err := Open(ctx, k, t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Bucket makes a fresh bucket for a test.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	name := "b" + strings.ToLower(rand.Text()[:12])
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.CreateBucket(ctx, name); err != nil {
		t.Fatalf("create bucket on %s: %v", s.Kind, err)
	}
	return name
}
