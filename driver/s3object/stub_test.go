package s3object

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/pipenet"
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
	l, err := s.network.Listen("tcp", "")
	must(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: s}}
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
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
	if s.intercept != nil && s.intercept(w, r) {
		return
	}
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
	store.conditions.heeded = true
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
