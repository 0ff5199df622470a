//go:build integration

package s3bucket_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
)

// bareEnvironment removes all AWS settings but credentials.
func bareEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// refusing is a server that gives every request the same answer.
func refusing(t *testing.T, status int, code string, header ...string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>said the server</Message></Error>", code)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// silent is a server that accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

func withTLS(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// reach opens and checks a place. It returns a temporary error only if that is the wanted one.
func reach(t *testing.T, url string, create bool, want string) error {
	t.Helper()
	_, err := places.Enter(t, places.Parse(t, url), create, want)
	return err
}

func TestObjectStorageErrorsHaveARemedy(t *testing.T) {
	bareEnvironment(t)
	empty := refusing(t, 404, "NoSuchBucket")
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	plain := strings.Replace(empty, "http://", "https://", 1)
	for _, c := range []struct{ why, endpoint, err, hint string }{
		{"no server", "http://127.0.0.1:1", "no server answers at http://127.0.0.1:1: dial tcp", "check endpoint="},
		{"no such host", "http://nowhere.invalid", "no server answers at http://nowhere.invalid", "check endpoint="},
		{"a silent server", silent(t), "in time", "firewall"},
		{"no TLS", plain, "has no TLS", "endpoint=http://"},
		{"an unknown authority", withTLS(t), "unknown authority", "AWS_CA_BUNDLE"},
		{"no bucket", empty, "there is no bucket bucket", "makes it, and so does: aws s3 mb s3://bucket --endpoint-url " + empty + " --region r"},
		{"a wrong key", refusing(t, 403, "InvalidAccessKeyId"), "does not know the access key: it may have been replaced; give the present one (AWS_ACCESS_KEY_ID", ""},
		{"a wrong secret", refusing(t, 403, "SignatureDoesNotMatch"), "the secret key may have been replaced; give the present one (AWS_SECRET_ACCESS_KEY", ""},
		{"a session that is over", refusing(t, 400, "ExpiredToken"), "the session of the credentials is over or another's; log in again", ""},
		{"no right to read", refusing(t, 403, "AccessDenied"), "s3:GetObject on arn:aws:s3:::bucket/p/*", "docs/object-storage.md"},
		{"a wrong region", refusing(t, 301, "PermanentRedirect", "X-Amz-Bucket-Region", "eu-west-9"), "is in region eu-west-9, not in r", "region=..."},
		{"a wrong region, unnamed", refusing(t, 400, "AuthorizationHeaderMalformed"), "not to be reached with region r at this endpoint", "region=..."},
		{"a wrong clock", refusing(t, 403, "RequestTimeTooSkewed"), "the clock of this machine", ""},
		{"no object storage", refusing(t, 404, "Oops"), "not how S3 says that an object is missing; check the endpoint", "endpoint= must be the address of the S3 API"},
		{"another web server", web.URL, "check the endpoint", "endpoint= must be the address of the S3 API"},
		{"a busy server", refusing(t, 503, "SlowDown"), "SlowDown", ""},
		{"a server that is starting", refusing(t, 502, "Oops"), "502", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			url := "s3://bucket/p?region=r&endpoint=" + c.endpoint
			var err error
			if c.why == "a silent server" {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_, err = places.Visit(ctx, t, places.Parse(t, url), false)
			} else {
				err = reach(t, url, false, c.err)
			}
			places.Says(t, err, c.err, c.hint)
			places.Says(t, err, "s3://bucket/p?endpoint="+c.endpoint, "")
			waiting := []string{"no server", "no such host", "a silent server", "a busy server", "a server that is starting"}
			if waits := slices.Contains(waiting, c.why); fault.Passes(err) != waits {
				t.Errorf("waiting helps: %v", !waits)
			}
		})
	}
}

func TestObjectStorageNeedsARegionAndCredentials(t *testing.T) {
	bareEnvironment(t)
	var f *fault.Error
	if err := reach(t, "s3://bucket", false, ""); !errors.As(err, &f) ||
		!strings.Contains(f.Error(), "no region is known") || !strings.Contains(f.Hint, "region=...") || fault.Code(err) != fault.Usage {
		t.Errorf("got %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	for _, create := range []bool{false, true} {
		if err := reach(t, "s3://bucket?region=r&endpoint=http://127.0.0.1:1", create, ""); !errors.As(err, &f) ||
			!strings.Contains(f.Error(), "no credentials are found") || !strings.Contains(f.Hint, "AWS_PROFILE") {
			t.Errorf("got %v", err)
		}
	}
}

func TestRegionAndEndpointComeFromTheEnvironmentToo(t *testing.T) {
	bareEnvironment(t)
	t.Setenv("AWS_REGION", "r")
	t.Setenv("AWS_ENDPOINT_URL_S3", refusing(t, 404, "NoSuchKey")) // the bucket is there
	if err := reach(t, "s3://bucket", false, ""); err != nil {
		t.Error(err)
	}
}

// No server answers. The host name that is looked up shows how the bucket is addressed.
func TestPathStyle(t *testing.T) {
	bareEnvironment(t)
	for parameters, want := range map[string]string{
		"":                  "lookup nowhere.invalid",
		"&path-style=true":  "lookup nowhere.invalid",
		"&path-style=false": "lookup bucket.nowhere.invalid",
	} {
		err := reach(t, "s3://bucket?region=r&endpoint=http://nowhere.invalid"+parameters, false, want)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", parameters, err)
		}
	}
}

func TestBucketIsCreatedIfAskedAndOnlyIfMissing(t *testing.T) {
	bareEnvironment(t)
	var mu sync.Mutex
	made := 0
	buckets := map[string]bool{}
	memory := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		bucket := strings.Trim(r.URL.Path, "/")
		switch {
		case r.Method == http.MethodPut:
			buckets[bucket] = true
			made++
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
		case !buckets[bucket]:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(memory.Close)
	for _, region := range []string{"us-east-1", "eu-test-1"} {
		for range 2 {
			must.OK(t, reach(t, "s3://made-in-"+region+"?region="+region+"&endpoint="+memory.URL, true, ""))
		}
	}
	if made != 2 {
		t.Errorf("%d creations", made)
	}
}

func TestBucketThatCannotBeCreated(t *testing.T) {
	bareEnvironment(t)
	for _, c := range []struct{ code, err, hint string }{
		{"AccessDenied", "cannot be made: AccessDenied: said the server", "s3:CreateBucket"},
		{"BucketAlreadyExists", "belongs to another account", "another name"},
		{"InvalidLocationConstraint", "the region is wrong", "region="},
		{"InvalidBucketName", "cannot be made: ", ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.WriteHeader(http.StatusConflict)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>said the server</Message></Error>", c.code)
		}))
		t.Cleanup(s.Close)
		err := reach(t, "s3://bucket?region=r&endpoint="+s.URL, true, c.err)
		var f *fault.Error
		if !errors.As(err, &f) || !strings.Contains(f.Error(), c.err) || !strings.Contains(f.Hint, c.hint) {
			t.Errorf("%s: got %v", c.code, err)
		}
	}
}

// TestUnfitServerHasARemedy: such an error comes from no answer, and must not read as if the server
// were down.
func TestUnfitServerHasARemedy(t *testing.T) {
	bareEnvironment(t)
	careless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"x"`) }))
	t.Cleanup(careless.Close)
	place := places.Parse(t, "s3://bucket/p?region=r&endpoint="+careless.URL)
	s, err := stores.Open(t.Context(), place, stores.Options{Client: "the test"})
	must.OK(t, err)
	_, err = s.Driver.CompareAndSwap(t.Context(), "key", "", []byte("value"))
	var f *fault.Error
	if err := place.Explain(err); !errors.As(err, &f) || !strings.Contains(f.Error(), "unfit for elections: If-None-Match") ||
		!strings.Contains(f.Hint, "tenure help stores") || fault.Passes(err) {
		t.Errorf("got %v", err)
	}
}
