//go:build integration

package s3lect_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestElectorOnAServerThatIgnoresConditions never writes the lockfile, and does not lead. The
// elector makes its store itself, from the environment.
func TestElectorOnAServerThatIgnoresConditions(t *testing.T) {
	puts := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<Error><Code>NoSuchKey</Code></Error>"))
			return
		}
		w.Header().Set("ETag", `"49f68a5c8493ec2c0bf489821c21fc3b"`)
		puts <- r.URL.Path
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
	} {
		t.Setenv(name, value)
	}
	opts := options(memory.NewPolled(), "a")
	opts.Storage, opts.Configure = nil, nil
	opts.Config.LockfilePath = "s3://bucket/leader/my-group.json"
	e, err := s3lect.NewS3Elector(opts)
	if err != nil {
		t.Fatal(err)
	}
	mustStart(t, e)
	for range 4 { // more than one try
		select {
		case path := <-puts:
			if path != "/bucket/leader/.tenure-probe-conditions" {
				t.Errorf("%s is written", path)
			}
		case <-wait.Context(t).Done():
			t.Fatal("it tries no longer")
		}
	}
	if e.IsLeader() {
		t.Error("it leads")
	}
	mustStop(t, e)
}
