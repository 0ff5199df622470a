package s3d

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/test/internal/process"
)

// installPatience is the time limit for fetching and compiling the tools of one kind.
const installPatience = 20 * time.Minute

// Start runs servers of a kind for the length of a test, in a directory of its own. The test fails
// if a server cannot be installed or started.
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

// Bucket creates a new bucket for a test.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	name := "b" + strings.ToLower(rand.Text()[:12])
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	if err := s.CreateBucket(ctx, name); err != nil {
		t.Fatalf("create bucket on %s: %v", s.Kind, err)
	}
	return name
}
