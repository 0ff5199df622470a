//go:build integration

package recipes

import (
	"testing"

	"github.com/tenure-go/tenure/test/internal/natsd"
)

// nats starts an empty server, and returns its URL.
func nats(t *testing.T) string {
	t.Helper()
	s, err := natsd.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s.URL()
}
