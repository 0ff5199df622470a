//go:build integration

package s3object

import (
	"net/http/httptest"
	"testing"
)

// TestFromEnvironmentOverSockets reaches a server with the client that the environment configures.
func TestFromEnvironmentOverSockets(t *testing.T) {
	bareEnvironment(t)
	s := startStub(t)
	server := httptest.NewServer(s)
	defer server.Close()
	store, err := FromEnvironment(t.Context(), "bucket", WithEndpoint(server.URL),
		WithRegion("eu-test-1"), WithPrefix("p"))
	if err != nil {
		t.Fatal(err)
	}
	if n := s.count(""); n != 0 {
		t.Errorf("%d requests before the first call", n)
	}
	s.swap(t, store, "key", "", "value")
	if got := s.value("p/key"); got != "value" {
		t.Errorf("the object holds %q", got)
	}
}
