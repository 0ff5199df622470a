package servers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

// Objects is object storage whose bucket is named "bucket".
type Objects struct {
	// URL names a place in the bucket.
	URL string
	// Gets and Puts count the requests that were answered.
	Gets, Puts atomic.Int64
	// Down makes it answer no request.
	Down atomic.Bool
	// ReadOnly refuses writes, and Careless ignores their conditions. Set these before the first
	// request.
	ReadOnly, Careless bool

	inner http.Handler
}

// StartObjects starts object storage.
func StartObjects(t *testing.T) *Objects {
	t.Helper()
	backend := s3mem.New()
	must.OK(t, backend.CreateBucket("bucket"))
	o := &Objects{inner: gofakes3.New(backend).Server()}
	s := httptest.NewServer(o)
	t.Cleanup(s.Close)
	o.URL = "s3://bucket/p?region=r&endpoint=" + s.URL
	return o
}

// ServeHTTP answers one request.
func (o *Objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	put := r.Method == http.MethodPut
	switch {
	case o.Down.Load():
		panic(http.ErrAbortHandler)
	case put && o.ReadOnly:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
		return
	case put && o.Careless:
		r.Header.Del("If-Match")
		r.Header.Del("If-None-Match")
	}
	o.inner.ServeHTTP(w, r)
	if put {
		o.Puts.Add(1)
	} else {
		o.Gets.Add(1)
	}
}
