package s3object

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/test/pipes"
)

// stub is a server that honors conditional writes, unless it is configured otherwise. It needs no
// sockets, and works in a bubble of testing/synctest if it was started there.
type stub struct {
	url     string
	network *pipenet.Network

	// intercept returns true if it has answered the request itself. It must be set before the first
	// request.
	intercept func(w http.ResponseWriter, r *http.Request) bool
	// match reports whether an If-Match header matches an ETag, which is given without quotes.
	match func(header, etag string) bool
	// gap runs between the check of a write's condition and the write. If it is nil, both are
	// atomic.
	gap func(key string)
	// etag returns the ETag of a value, without quotes.
	etag func(value string) string

	mu        sync.Mutex
	objects   map[string]string
	requests  []string // method and path
	revision  string   // of the bucket's versioning
	undeleted bool     // deletes are refused
}

func startStub(t testing.TB, change ...func(*stub)) *stub {
	s := &stub{objects: map[string]string{}, etag: etagOf, match: func(header, etag string) bool {
		return strings.Trim(header, `"`) == etag
	}}
	for _, c := range change {
		c(s)
	}
	s.network = new(pipenet.Network)
	s.url = "http://" + pipes.Serve(t, s.network, s)
	return s
}

// answering sets a function that returns true if it has answered a request itself.
func answering(answer func(s *stub, w http.ResponseWriter, r *http.Request) bool) func(*stub) {
	return func(s *stub) {
		s.intercept = func(w http.ResponseWriter, r *http.Request) bool { return answer(s, w, r) }
	}
}

// reach makes a client use the stub.
func (s *stub) reach(o *s3.Options) { o.HTTPClient = s.network.Client() }

func etagOf(value string) string {
	sum := md5.Sum([]byte(value))
	return hex.EncodeToString(sum[:])
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if s.intercept == nil || !s.intercept(w, r) {
		s.carryOut(w, r)
	}
}

func (s *stub) carryOut(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Query().Has("versioning"):
		fmt.Fprintf(w, "<VersioningConfiguration>%s</VersioningConfiguration>", s.revision)
	case r.Method == http.MethodGet:
		s.get(w, r)
	case r.Method == http.MethodPut:
		s.put(w, r)
	case r.Method == http.MethodDelete:
		s.delete(w, r)
	}
}

func (s *stub) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	value, ok := s.objects[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		refuse(w, 404, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", `"`+s.etag(value)+`"`)
	fmt.Fprint(w, value)
}

func (s *stub) put(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.meets(r) {
		refuse(w, 412, "PreconditionFailed")
		return
	}
	if s.gap != nil {
		s.mu.Unlock()
		s.gap(r.URL.Path)
		s.mu.Lock()
	}
	s.objects[r.URL.Path] = string(body)
	w.Header().Set("ETag", `"`+s.etag(string(body))+`"`)
}

func (s *stub) meets(r *http.Request) bool {
	value, ok := s.objects[r.URL.Path]
	if r.Header.Get("If-None-Match") == "*" && ok {
		return false
	}
	header := r.Header.Get("If-Match")
	return header == "" || ok && s.match(header, s.etag(value))
}

func (s *stub) delete(w http.ResponseWriter, r *http.Request) {
	if s.undeleted {
		refuse(w, 403, "AccessDenied")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, r.URL.Path)
	w.WriteHeader(http.StatusNoContent)
}

// set writes without any condition, and returns the version.
func (s *stub) set(key, value string) driver.Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects["/bucket/"+key] = value
	return driver.Version(etagOf(value))
}

func (s *stub) value(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects["/bucket/"+key]
}

func (s *stub) count(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>the message</Message></Error>", code)
}

// client makes one attempt and sends no checksums. The default client would make five attempts and
// send checksums.
func (s *stub) client(change ...func(*s3.Options)) *s3.Client {
	o := s3.Options{
		Region:           "eu-test-1",
		BaseEndpoint:     &s.url,
		UsePathStyle:     true,
		RetryMaxAttempts: 5,

		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	}
	return s3.New(o, append([]func(*s3.Options){s.reach}, change...)...)
}

// open returns a store that need not check its server any more, so that a test sees only the
// requests of its own calls.
func (s *stub) open(t testing.TB, opts ...Option) *Store {
	t.Helper()
	store := s.openFirst(t, opts...)
	store.conditions.Trust()
	return store
}

// openFirst returns a store that has written nothing yet, as after the start of a process.
func (s *stub) openFirst(t testing.TB, opts ...Option) *Store {
	t.Helper()
	store, err := New(s.client(), "bucket", opts...)
	must(t, err)
	return store
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func bounded(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// patience is so long that only a hang takes longer.
const patience = 2 * time.Minute

func (s *stub) swap(t testing.TB, store *Store, key string, prev driver.Version, value string) driver.Version {
	t.Helper()
	v, err := store.CompareAndSwap(bounded(t, patience), key, prev, []byte(value))
	must(t, err)
	return v
}

func (s *stub) read(t testing.TB, store *Store, key string) driver.Entry {
	t.Helper()
	e, err := store.Read(bounded(t, patience), key)
	must(t, err)
	return e
}

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
			if want && !strings.Contains(fmt.Sprint(err), "with package gcsobject") {
				t.Errorf("%s by %s does not say what to do: %v", endpoint, way, err)
			}
		}
	}
}
