package s3object

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// bareEnvironment removes all AWS settings.
func bareEnvironment(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_CA_BUNDLE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
}

func TestFromEnvironment(t *testing.T) {
	bareEnvironment(t)
	s := startStub(t)
	store, err := FromEnvironment(t.Context(), "bucket", WithEndpoint(s.url), WithRegion("eu-test-1"), WithPrefix("p"))
	must(t, err)
	store.client = s3.New(store.client.Options(), s.reach)
	s.swap(t, store, "key", "", "value")
	if got := s.value("p/key"); got != "value" {
		t.Errorf("the object holds %q", got)
	}
}

// TestAddressing: an endpoint is addressed by path, and S3 itself only if that is set.
func TestAddressing(t *testing.T) {
	for _, c := range []struct {
		endpoint, region string // in the environment
		opts             []Option
		pathStyle        bool
	}{
		{"http://server:1", "eu-test-1", nil, true},
		{"", "", []Option{WithRegion("eu-test-1")}, false},
		{"", "", []Option{WithRegion("eu-test-1"), WithPathStyle()}, true},
	} {
		bareEnvironment(t)
		t.Setenv("AWS_ENDPOINT_URL_S3", c.endpoint)
		t.Setenv("AWS_REGION", c.region)
		store, err := FromEnvironment(t.Context(), "bucket", c.opts...)
		must(t, err)
		o := store.client.Options()
		if o.UsePathStyle != c.pathStyle || store.region != "eu-test-1" || aws.ToString(o.BaseEndpoint) != c.endpoint {
			t.Errorf("path style %t, region %s, endpoint %v; want %+v", o.UsePathStyle, store.region, o.BaseEndpoint, c)
		}
	}
}

func TestUnusableSettings(t *testing.T) {
	bareEnvironment(t)
	region := WithRegion("eu-test-1")
	for want, open := range map[string]func() error{
		"no region is known": func() error { return opened("bucket") },
		"endpoint \"localhost:9000\"": func() error {
			return opened("bucket", region, WithEndpoint("localhost:9000"))
		},
		"no name of a bucket": func() error { return opened("", region) },
		"prefix \"a//b\"":     func() error { return opened("bucket", region, WithPrefix("a//b")) },
		"prefix \"a/../b\"":   func() error { return opened("bucket", region, WithPrefix("a/../b")) },
		"client is nil":       func() error { _, err := New(nil, "bucket"); return err },
		"us-east-1 does for":  func() error { _, err := New(s3.New(s3.Options{}), "bucket"); return err },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in: %v", want, err)
		}
	}
}

func opened(bucket string, opts ...Option) error {
	_, err := FromEnvironment(context.Background(), bucket, opts...)
	return err
}

func TestCheckKey(t *testing.T) {
	s := startStub(t).open(t, WithPrefix("four"))
	long := func(part, n int) string { return strings.Repeat(strings.Repeat("k", part)+"/", n) }
	for _, key := range []string{"billing", "team/billing", "Zürich ☕", "a.b", "..a", ".tenure", strings.Repeat("k", 255),
		long(254, 3) + strings.Repeat("k", 254), long(243, 4) + "k", ".tenure-probe-x/y"} {
		if err := s.CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a\nb", "a\x00", "a\xff",
		strings.Repeat("k", 256), "a/" + strings.Repeat("é", 128), long(254, 3) + strings.Repeat("k", 255), long(244, 4) + "k",
		".tenure-probe-x", "a/.tenure-probe-x"} {
		if err := s.CheckKey(key); err == nil {
			t.Errorf("%q passes", key)
		}
		if _, err := s.Read(t.Context(), key); err == nil {
			t.Errorf("%q is read", key)
		}
		if _, err := s.CompareAndSwap(t.Context(), key, "", nil); err == nil {
			t.Errorf("%q is written", key)
		}
	}
}

// TestLongNamesAreRefusedByTheElection: a candidate learns of it at its start, not from the server.
func TestLongNamesAreRefusedByTheElection(t *testing.T) {
	s := startStub(t)
	for name, limit := range map[string]string{
		strings.Repeat("k", 300):                              "has 300 bytes, of at most 255 between slashes",
		strings.Repeat("k/", 600):                             "1200 bytes with the prefix, of at most 1024",
		strings.Repeat(strings.Repeat("k", 247)+"/", 4) + "k": "992 bytes with the prefix up to the last slash, of at most 984",
	} {
		_, err := tenure.New(s.open(t), name, tenure.Config{ID: "a"})
		var wrong *tenure.ConfigError
		if !errors.As(err, &wrong) || wrong.Fields[0].Field != "Name" || !strings.Contains(err.Error(), limit) {
			t.Errorf("want %q in: %v", limit, err)
		}
	}
	if _, err := New(s.client(), "bucket", WithPrefix(strings.Repeat(strings.Repeat("p", 246)+"/", 4))); err == nil ||
		!strings.Contains(err.Error(), "987 bytes, of at most 983") {
		t.Errorf("a long prefix: %v", err)
	}
	if n := s.count(""); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestGoogleCloudStorageIsRefused by its address, in each way to configure one.
func TestGoogleCloudStorageIsRefused(t *testing.T) {
	bareEnvironment(t)
	t.Setenv("AWS_REGION", "auto")
	for endpoint, want := range map[string]bool{
		"https://storage.googleapis.com": true, "http://STORAGE.googleapis.com.:443/": true,
		"https://bucket.storage.googleapis.com": true, "https://storage.us-east1.rep.googleapis.com": true,
		"https://storage-mine.p.googleapis.com": true, "https://googleapis.com.example.com": false,
		"https://notgoogleapis.com": false, "http://127.0.0.1:9000": false,
	} {
		ways := map[string]func() (*Store, error){
			"option": func() (*Store, error) { return FromEnvironment(t.Context(), "bucket", WithEndpoint(endpoint)) },
			"client": func() (*Store, error) {
				return New(s3.New(s3.Options{Region: "auto", BaseEndpoint: &endpoint}), "bucket")
			},
			"environment": func() (*Store, error) {
				t.Setenv("AWS_ENDPOINT_URL_S3", endpoint)
				return FromEnvironment(t.Context(), "bucket")
			},
		}
		for way, open := range ways {
			_, err := open()
			if errors.Is(err, driver.ErrUnfit) != want || err != nil && !want {
				t.Errorf("%s by %s: %v", endpoint, way, err)
			}
			if want && !strings.Contains(fmt.Sprint(err), "hold the election in NATS") {
				t.Errorf("%s by %s does not say what to do: %v", endpoint, way, err)
			}
		}
	}
}
