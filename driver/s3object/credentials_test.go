//go:build unix

package s3object

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// keyServer is an S3 server that accepts only requests with one access key.
type keyServer struct {
	url      string
	key      atomic.Value
	requests atomic.Int64
	refused  int // the status
}

func startKeyServer(t *testing.T, refused int) *keyServer {
	s := &keyServer{refused: refused}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.key.Load().(string)+"/") {
			w.WriteHeader(s.refused)
			return
		}
		w.Header().Set("ETag", `"v"`)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// profile is a file of credentials, which is the only source of them.
func profile(t *testing.T) (write func(text string), file string) {
	bareEnvironment(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	file = filepath.Join(t.TempDir(), "credentials")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	return func(text string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}, file
}

func keyed(id string) string {
	return "[default]\naws_access_key_id=" + id + "\naws_secret_access_key=secret\n"
}

func TestReplacedCredentials(t *testing.T) {
	write, file := profile(t)
	server := startKeyServer(t, http.StatusForbidden)
	var reports []string
	write(keyed("one"))
	t.Setenv("AWS_REGION", "eu-test-1")
	cfg, err := LoadConfig(t.Context(), func(err error) { reports = append(reports, err.Error()) })
	must(t, err)
	store, err := New(s3.NewFromConfig(cfg, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = &server.url, true }), "bucket")
	must(t, err)
	for _, step := range []struct {
		why      string
		happens  func()
		accepted string
		reports  int
	}{
		{"the first", func() {}, "one", 0},
		{"replaced", func() { write(keyed("second")) }, "second", 0},
		{"half-written", func() { write("[default]\naws_access_key_id=third\n") }, "second", 1},
		{"complete", func() { write(keyed("third")) }, "third", 1},
		{"gone", func() { _ = os.Remove(file) }, "third", 2},
	} {
		step.happens()
		server.key.Store(step.accepted)
		if _, err := store.Read(t.Context(), "key"); err != nil {
			t.Errorf("%s: %v", step.why, err)
		}
		if len(reports) != step.reports {
			t.Errorf("%s: %d reports: %q", step.why, len(reports), reports)
		}
	}
}

// TestRefusedCredentials: what is behind the files may change without them, such as the program
// that prints the credentials. A request that was refused is a reason to ask again.
func TestRefusedCredentials(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden} {
		write, _ := profile(t)
		server := startKeyServer(t, status)
		source := filepath.Join(t.TempDir(), "source")
		hand := func(id string) {
			text := `{"Version": 1, "AccessKeyId": "` + id + `", "SecretAccessKey": "secret"}`
			must(t, os.WriteFile(source, []byte(text), 0o600))
		}
		write("[default]\ncredential_process = cat " + source + "\n")
		hand("one")
		server.key.Store("one")
		store, err := FromEnvironment(t.Context(), "bucket", WithEndpoint(server.url), WithRegion("eu-test-1"))
		must(t, err)
		read := func(ctx context.Context) error { _, err := store.Read(ctx, "key"); return err }
		must(t, read(t.Context()))
		hand("second")
		server.key.Store("second")
		if err := read(t.Context()); err == nil {
			t.Errorf("%d: a refusal is no error, or the request was sent again", status)
		}
		if err := read(t.Context()); err != nil {
			t.Errorf("%d: %v", status, err)
		}
		if n := server.requests.Load(); n != 3 {
			t.Errorf("%d: three reads made %d requests", status, n)
		}
	}
}
