package s3object

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// outcome is a possible result of an adapter's call.
type outcome int

const (
	open outcome = iota // the outcome is unknown
	conflict
	denied
)

func outcomeOf(err error) outcome {
	switch {
	case errors.Is(err, driver.ErrConflict):
		return conflict
	case errors.Is(err, driver.ErrDenied):
		return denied
	}
	return open
}

var answers = []struct {
	status      int
	code        string
	header      string // X-Amz-Bucket-Region
	read, write outcome
	says        string // in both errors
	whenWriting string
}{
	{status: 412, code: "PreconditionFailed", write: conflict},
	{status: 409, code: "ConditionalRequestConflict", write: conflict},
	{status: 409, code: "OperationAborted", write: conflict},
	{status: 409, code: "InvalidBucketState"},
	{status: 404, code: "NoSuchBucket", says: "there is no bucket bucket"},
	{status: 404, code: "", says: "check the endpoint"},
	{status: 404, code: "NoSuchUpload", says: "check the endpoint"},
	{status: 403, code: "AccessDenied", read: denied, write: denied, says: "arn:aws:s3:::bucket", whenWriting: "s3:PutObject"},
	{status: 403, code: "", read: denied, write: denied},
	{status: 401, code: "Unauthorized", read: denied, write: denied},
	{status: 403, code: "InvalidAccessKeyId", read: denied, write: denied, says: "AWS_ACCESS_KEY_ID"},
	{status: 403, code: "SignatureDoesNotMatch", read: denied, write: denied, says: "AWS_SECRET_ACCESS_KEY"},
	{status: 400, code: "ExpiredToken", read: denied, write: denied, says: "AWS_SESSION_TOKEN"},
	{status: 403, code: "RequestTimeTooSkewed", says: "clock of this machine"},
	{status: 301, code: "PermanentRedirect", header: "eu-other-2", says: "is in region eu-other-2, not in eu-test-1"},
	{status: 301, code: "PermanentRedirect", says: "region eu-test-1"},
	{status: 301, header: "eu-other-2", says: "AWS_REGION=eu-other-2"},
	{status: 400, code: "AuthorizationHeaderMalformed", header: "eu-other-2", says: "AWS_REGION=eu-other-2"},
	{status: 400, code: "InvalidRequest", says: "InvalidRequest"},
	{status: 429, code: "TooManyRequests", says: "fewer requests"},
	{status: 503, code: "SlowDown", says: "fewer requests"},
	{status: 503, code: "ServiceUnavailable", says: "503"},
	{status: 500, code: "InternalError", says: "500"},
	{status: 502, says: "502"},
	{status: 501, code: "NotImplemented", whenWriting: "no conditional writes"},
}

func TestOutcomes(t *testing.T) {
	for _, a := range answers {
		t.Run(http.StatusText(a.status)+" "+a.code, func(t *testing.T) {
			s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
				if a.header != "" {
					w.Header().Set("X-Amz-Bucket-Region", a.header)
				}
				if a.code == "" {
					w.WriteHeader(a.status)
					return true
				}
				refuse(w, a.status, a.code)
				return true
			}))
			store := s.open(t)
			_, err := store.Read(bounded(t, patience), "key")
			check(t, "read", err, a.read, a.says)
			for _, prev := range []driver.Version{"", "version"} {
				_, err = store.CompareAndSwap(bounded(t, patience), "key", prev, []byte("value"))
				check(t, "swap", err, a.write, a.says, a.whenWriting)
			}
			if n := s.count(""); n != 3 {
				t.Errorf("%d requests for 3 calls", n)
			}
			want := a.write
			if a.status == http.StatusConflict || a.status == http.StatusPreconditionFailed {
				want = open // it concerns the check, and decides nothing about the cell
			}
			_, err = s.openFirst(t).CompareAndSwap(bounded(t, patience), "key", "", []byte("value"))
			check(t, "first swap", err, want, a.says, a.whenWriting)
		})
	}
}

func check(t *testing.T, what string, err error, want outcome, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: no error", what)
	}
	if got := outcomeOf(err); got != want {
		t.Errorf("%s: outcome %v, want %v: %v", what, got, want, err)
	}
	var api smithy.APIError
	if want != conflict && !errors.As(err, &api) {
		t.Errorf("%s: the server's word is lost: %v", what, err)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: want %q in: %v", what, text, err)
		}
	}
}

func TestRemovedRecordConflicts(t *testing.T) {
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("If-Match") == "" {
			return false
		}
		refuse(w, 404, "NoSuchKey")
		return true
	}))
	_, err := s.open(t).CompareAndSwap(bounded(t, patience), "key", "version", []byte("value"))
	check(t, "swap", err, conflict)
}

func TestDeniedReadNamesTheRightToList(t *testing.T) {
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		refuse(w, 403, "AccessDenied")
		return true
	}))
	_, err := s.open(t, WithPrefix("a/b")).Read(bounded(t, patience), "key")
	check(t, "read", err, denied, "s3:ListBucket on arn:aws:s3:::bucket", "arn:aws:s3:::bucket/a/b/*")
}

func TestWriteWithoutETagIsOpen(t *testing.T) {
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool { return true }))
	store := s.open(t)
	_, err := store.CompareAndSwap(bounded(t, patience), "key", "", []byte("value"))
	if err == nil || outcomeOf(err) != open || !strings.Contains(err.Error(), "no ETag") {
		t.Errorf("swap: %v", err)
	}
	if _, err = store.Read(bounded(t, patience), "key"); err == nil || !strings.Contains(err.Error(), "no ETag") {
		t.Errorf("read: %v", err)
	}
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

func TestMissingCredentialsAreNamed(t *testing.T) {
	s := startStub(t)
	store, err := New(s.client(withoutCredentials), "bucket")
	must(t, err)
	_, err = store.CompareAndSwap(bounded(t, patience), "key", "", []byte("value"))
	if err == nil || outcomeOf(err) != open || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("swap: %v", err)
	}
	if n := s.count(""); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestClockSkewIsCorrected: the server accepts signatures only by its own clock, which is an hour
// ahead.
func TestClockSkewIsCorrected(t *testing.T) {
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		now := time.Now().Add(time.Hour)
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err == nil && now.Sub(signed).Abs() < 15*time.Minute {
			return false
		}
		refuse(w, 403, "RequestTimeTooSkewed")
		return true
	}))
	store := s.open(t)
	_, err := store.Read(bounded(t, patience), "key")
	check(t, "read", err, open, "off by about 1h0m0s")
	if e := s.read(t, store, "key"); !e.Absent() {
		t.Errorf("the second read: %+v", e)
	}
}

// TestHangingServer: the server hangs at one of three points: before the answer, in its header, or
// in its body. If the context has ended before the call, no request is sent.
func TestHangingServer(t *testing.T) {
	const limit = 50 * time.Millisecond
	for name, c := range map[string]struct {
		begin string
		limit time.Duration
	}{
		"before the call": {"", 0},
		"before":          {"", limit},
		"header":          {"HTTP/1.1 200 OK\r\nETag: \"x\"\r\n", limit},
		"body":            {"HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 10\r\n\r\nabc", limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { hang(t, name, c.begin, c.limit) })
		})
	}
}

func hang(t *testing.T, name, begin string, limit time.Duration) {
	s := startStub(t, hanging(t, begin))
	store := s.open(t)
	for what, call := range map[string]func(context.Context) error{
		"read":    func(ctx context.Context) error { _, err := store.Read(ctx, "key"); return err },
		"swap":    func(ctx context.Context) error { _, err := store.CompareAndSwap(ctx, "key", "v", nil); return err },
		"inspect": func(ctx context.Context) error { _, err := store.Inspect(ctx, time.Second); return err },
	} {
		if name == "body" && what != "read" {
			continue // a write ends with the header of its answer
		}
		began := time.Now()
		err := call(bounded(t, limit))
		if !errors.Is(err, context.DeadlineExceeded) || outcomeOf(err) != open {
			t.Errorf("%s: %v", what, err)
		}
		most := limit
		if what == "inspect" {
			most += cleaning
		}
		if took := time.Since(began); took > most {
			t.Errorf("%s takes %v", what, took)
		}
		if n := s.count(""); (n == 0) != (limit == 0) {
			t.Errorf("%s: %d requests were sent", what, n)
		}
	}
}

func hanging(t *testing.T, begin string) func(*stub) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	return answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		conn, out, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return true
		}
		defer func() { _ = conn.Close() }()
		_, _ = out.WriteString(begin)
		_ = out.Flush()
		<-over
		return true
	})
}

// TestReplacedSecret: one access key gets another secret.
func TestReplacedSecret(t *testing.T) {
	store, err := New(s3.New(s3.Options{Region: "eu-test-1"}), "bucket")
	must(t, err)
	at := time.Now()
	signed := func(by s3.HTTPSignerV4, secret string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host/bucket/a%20b", nil)
		must(t, err)
		key := aws.Credentials{AccessKeyID: "key", SecretAccessKey: secret}
		must(t, by.SignHTTP(t.Context(), key, r, "hash", "s3", "eu-test-1", at))
		return r.Header.Get("Authorization")
	}
	for _, secret := range []string{"one", "one", "two", "one"} {
		fresh := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
		if got, want := signed(store.client.Options().HTTPSignerV4, secret), signed(fresh, secret); got != want {
			t.Errorf("secret %s: got %s, want %s", secret, got, want)
		}
	}
}

func withoutCredentials(o *s3.Options) {
	o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("there are none")
	})
}

func at(date string) func(*stub) {
	return answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		if date == "" {
			w.Header()["Date"] = nil
		} else {
			w.Header().Set("Date", date)
		}
		return false
	})
}

func TestFloorComesFromTheServersClock(t *testing.T) {
	const date = "Fri, 20 Nov 2026 10:00:07 GMT"
	want := uint64(time.Date(2026, 11, 20, 10, 0, 7, 0, time.UTC).UnixMilli())
	s := startStub(t, at(date))
	store := s.open(t)
	if e := s.read(t, store, "key"); e.Floor != want || !e.Absent() || e.Version != "" {
		t.Errorf("a missing object: %+v; want floor %d", e, want)
	}
	v := s.swap(t, store, "key", "", "value")
	if e := s.read(t, store, "key"); e.Floor != want || e.Version != v || string(e.Value) != "value" {
		t.Errorf("an object: %+v; want floor %d", e, want)
	}
	s = startStub(t, at(""))
	if e := s.read(t, s.open(t), "key"); e.Floor != 0 {
		t.Errorf("without a Date the floor is %d", e.Floor)
	}
}

func TestDeleteMarkerIsAbsence(t *testing.T) {
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("X-Amz-Delete-Marker", "true")
		w.WriteHeader(http.StatusNotFound)
		return true
	}))
	if e := s.read(t, s.open(t), "key"); !e.Absent() || e.Version != "" {
		t.Errorf("%+v", e)
	}
}

func TestLongObjectIsCutOffBeyondTheLimit(t *testing.T) {
	s := startStub(t)
	long := strings.Repeat("x", 10<<20)
	v := s.set("key", long)
	e := s.read(t, s.open(t), "key")
	if len(e.Value) != driver.MaxValue+1 || e.Version != v {
		t.Errorf("%d bytes in version %q", len(e.Value), e.Version)
	}
}

func TestEmptyObjectHasAVersion(t *testing.T) {
	s := startStub(t)
	v := s.set("key", "")
	store := s.open(t)
	if e := s.read(t, store, "key"); !e.Absent() || e.Version != v {
		t.Errorf("%+v", e)
	}
	s.swap(t, store, "key", v, "value")
}

func TestObjectKeyAndHeaders(t *testing.T) {
	var got http.Header
	s := startStub(t, answering(func(s *stub, _ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			got = r.Header.Clone()
		}
		return false
	}))
	value := bytes.Repeat([]byte{0, 0xff}, driver.MaxValue/2)
	for _, prefix := range []string{"", "a/b", "a/b/", "/a/b"} {
		store := s.open(t, WithPrefix(prefix))
		v := s.swap(t, store, "x/y", "", string(value))
		if got.Get("Content-Type") != "application/json" || got.Get("If-None-Match") != "*" || got.Get("If-Match") != "" {
			t.Errorf("a creation is sent with %v", got)
		}
		where := strings.TrimPrefix(store.prefix, "/") + "x/y"
		if s.value(where) != string(value) {
			t.Errorf("prefix %q: nothing at %s", prefix, where)
		}
		s.swap(t, store, "x/y", v, "next")
		if got.Get("If-Match") != `"`+string(v)+`"` || got.Get("If-None-Match") != "" {
			t.Errorf("a swap is sent with %v", got)
		}
		for name := range got {
			if strings.Contains(strings.ToLower(name), "checksum") || strings.Contains(strings.ToLower(name), "md5") {
				t.Errorf("a write has a %s, which some servers refuse", name)
			}
		}
		s.mu.Lock()
		clear(s.objects)
		s.mu.Unlock()
	}
}

// hasty is a client that returns early from a request and still holds it.
type hasty struct{ held *http.Request }

func (h *hasty) Do(r *http.Request) (*http.Response, error) {
	h.held = r
	return nil, context.DeadlineExceeded
}

func TestCallerMayReuseTheValue(t *testing.T) {
	h := &hasty{}
	store, err := New(startStub(t).client(func(o *s3.Options) { o.HTTPClient = h }), "bucket")
	must(t, err)
	value := []byte("value")
	if _, err := store.CompareAndSwap(t.Context(), "key", "", value); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	copy(value, "XXXXX")
	if late, _ := io.ReadAll(h.held.Body); bytes.Contains(late, []byte("X")) {
		t.Errorf("what is sent late is %q", late)
	}
}

// wiped is the bucket after it was deleted and recreated, or after its server lost its disk.
func (s *stub) wiped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.objects)
}

// settable shows a time of day that differs from the true one.
func settable(off *atomic.Int64) func(*stub) {
	return answering(func(s *stub, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Date", time.Now().Add(time.Duration(off.Load())).UTC().Format(http.TimeFormat))
		return false
	})
}

func candidate(t *testing.T, store driver.Store, id string) *tenure.Election {
	t.Helper()
	e, err := tenure.New(store, "billing", tenure.Config{ID: id})
	must(t, err)
	return e
}

func elected(t *testing.T, e *tenure.Election) *tenure.Term {
	t.Helper()
	term, err := e.Campaign(bounded(t, time.Hour))
	must(t, err)
	return term
}

// turn leads for a moment, and returns the token.
func turn(t *testing.T, e *tenure.Election) uint64 {
	t.Helper()
	term := elected(t, e)
	if err := term.Resign(bounded(t, time.Hour)); err != nil {
		t.Error(err)
	}
	return term.Token()
}

// TestServerClockGoesBack: the object has the highest term. Tokens can fall only if the object is
// also deleted, and for a candidate that has seen none of the earlier tokens.
func TestServerClockGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off atomic.Int64
		s := startStub(t, settable(&off))
		old := candidate(t, s.open(t), "old")
		highest := turn(t, old)
		grows := func(token uint64, why string) {
			t.Helper()
			if token <= highest {
				t.Errorf("token %d after %d: %s", token, highest, why)
			}
			highest = max(highest, token)
		}
		off.Store(int64(-24 * time.Hour))
		grows(turn(t, candidate(t, s.open(t), "young")), "the object is there")
		grows(turn(t, old), "the object is there")
		s.wiped()
		grows(turn(t, old), "the candidate has seen all former terms")
		s.wiped()
		if token := turn(t, candidate(t, s.open(t), "younger")); token >= highest {
			t.Errorf("token %d after %d: the documentation is too careful", token, highest)
		}
		grows(turn(t, old), "the candidate has seen all former terms")
		s.wiped()
		off.Store(int64(time.Minute))
		grows(turn(t, candidate(t, s.open(t), "youngest")), "the clock is past the former terms")
	})
}
