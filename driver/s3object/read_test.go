package s3object

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
)

func withoutCredentials(o *s3.Options) {
	o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("there are none")
	})
}

func at(date string) func(*stub) {
	return func(s *stub) {
		s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if date == "" {
				w.Header()["Date"] = nil
			} else {
				w.Header().Set("Date", date)
			}
			return false
		}
	}
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
	s := startStub(t, func(s *stub) {
		s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("X-Amz-Delete-Marker", "true")
			w.WriteHeader(http.StatusNotFound)
			return true
		}
	})
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
	s := startStub(t, func(s *stub) {
		s.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				got = r.Header.Clone()
			}
			return false
		}
	})
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
	if err != nil {
		t.Fatal(err)
	}
	value := []byte("value")
	if _, err := store.CompareAndSwap(t.Context(), "key", "", value); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	copy(value, "XXXXX")
	if late, _ := io.ReadAll(h.held.Body); bytes.Contains(late, []byte("X")) {
		t.Errorf("what is sent late is %q", late)
	}
}
