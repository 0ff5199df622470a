// Package s3fake is a server of object storage within the process, which can fail on purpose.
package s3fake

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Region is that of all buckets.
const Region = "us-east-1"

// Server answers on a port of the loopback interface, without TLS and whatever the signature.
type Server struct {
	*Faults
	http *httptest.Server
}

// Start starts a server that holds these buckets in memory, and fails by the plan. Close stops it.
func Start(seed uint64, plan Plan, buckets ...string) (*Server, error) {
	handler, err := Memory(buckets...)
	if err != nil {
		return nil, err
	}
	f := Wrap(handler, seed, plan)
	return &Server{Faults: f, http: httptest.NewServer(f)}, nil
}

// Memory is what a server without faults does. It knows two users, one of whom may do nothing.
func Memory(buckets ...string) (http.Handler, error) {
	backend := s3mem.New()
	for _, b := range buckets {
		if err := backend.CreateBucket(b); err != nil {
			return nil, err
		}
	}
	inner := gofakes3.New(backend).Server()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), "Credential="+nobody+"/") {
			refuse(w, http.StatusForbidden, "AccessDenied")
			return
		}
		inner.ServeHTTP(w, r)
	}), nil
}

// URL is the endpoint.
func (s *Server) URL() string { return s.http.URL }

// Close ends the server and all its connections.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Client returns a new client of the server, with connections of its own.
func (s *Server) Client() *s3.Client { return Client(s.URL()) }

// The users.
const (
	anybody = "test"
	nobody  = "nobody"
)

// Client returns a new client of the server at a URL, or of what stands before it, with connections of its own.
func Client(url string) *s3.Client { return newClient(url, anybody) }

// Nobody returns a client without any rights.
func Nobody(url string) *s3.Client { return newClient(url, nobody) }

func newClient(url, user string) *s3.Client {
	return s3.New(s3.Options{
		Region:       Region,
		BaseEndpoint: &url,
		UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: user, SecretAccessKey: "testtest"}, nil
		}),
	})
}
