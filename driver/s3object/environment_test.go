package s3object

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// bareEnvironment removes all AWS settings.
func bareEnvironment(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
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
	if err != nil {
		t.Fatal(err)
	}
	store.client = s3.New(store.client.Options(), s.reach)
	s.swap(t, store, "key", "", "value")
	if got := s.value("p/key"); got != "value" {
		t.Errorf("the object holds %q", got)
	}
}

func TestEnvironmentNamesEndpointAndRegion(t *testing.T) {
	bareEnvironment(t)
	s := startStub(t)
	t.Setenv("AWS_ENDPOINT_URL_S3", s.url)
	t.Setenv("AWS_REGION", "eu-env-1")
	store, err := FromEnvironment(t.Context(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	if o := store.client.Options(); !o.UsePathStyle || store.region != "eu-env-1" {
		t.Errorf("path style %t, region %s", o.UsePathStyle, store.region)
	}
	store.client = s3.New(store.client.Options(), s.reach)
	s.swap(t, store, "key", "", "value")
}

func TestAddressOfS3Itself(t *testing.T) {
	bareEnvironment(t)
	for _, want := range []bool{false, true} {
		opts := []Option{WithRegion("eu-test-1")}
		if want {
			opts = append(opts, WithPathStyle())
		}
		store, err := FromEnvironment(t.Context(), "bucket", opts...)
		if err != nil {
			t.Fatal(err)
		}
		if o := store.client.Options(); o.UsePathStyle != want || o.BaseEndpoint != nil {
			t.Errorf("path style %t, endpoint %v", o.UsePathStyle, o.BaseEndpoint)
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
	for _, key := range []string{"billing", "team/billing", "Zürich ☕", "a.b", "..a", ".tenure", strings.Repeat("k", 1019)} {
		if err := s.CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a\nb", "a\x00", "a\xff",
		strings.Repeat("k", 1020), ".tenure-probe-x"} {
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
