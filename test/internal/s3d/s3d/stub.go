package s3d

import (
	"crypto/md5"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/internal/test/ports"
)

// stub stores and returns objects for any user and ignores all conditions. It is the simplest
// server that a client takes for S3.
type stub struct {
	server   http.Server
	listener net.Listener

	mu      sync.Mutex
	buckets map[string]bool
	objects map[string][]byte // by path
}

func newStub() *stub {
	s := &stub{buckets: map[string]bool{}, objects: map[string][]byte{}}
	s.server.Handler = s
	return s
}

func (s *stub) listen(port int) (err error) {
	if s.listener, err = net.Listen("tcp", ports.Address(port)); err == nil {
		go func() { _ = s.server.Serve(s.listener) }()
	}
	return err
}

func (s *stub) url() string { return "http://" + s.listener.Addr().String() }
func (s *stub) close()      { _ = s.server.Close() }

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	bucket, key, isObject := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !isObject || key == "":
		s.bucket(w, r, bucket)
	case !s.buckets[bucket]:
		refuse(w, "NoSuchBucket")
	default:
		s.object(w, r, body)
	}
}

func (s *stub) bucket(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method == http.MethodPut {
		s.buckets[name] = true
	} else if !s.buckets[name] {
		refuse(w, "NoSuchBucket")
	}
}

func (s *stub) object(w http.ResponseWriter, r *http.Request, body []byte) {
	switch r.Method {
	case http.MethodPut:
		s.objects[r.URL.Path] = body
	case http.MethodDelete:
		delete(s.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	held, ok := s.objects[r.URL.Path]
	if !ok {
		refuse(w, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, md5.Sum(held)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(held)
	}
}

func refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}
