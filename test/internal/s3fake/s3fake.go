// Package s3fake is a server of object storage within the process that can fail on purpose.
package s3fake

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/tenure-go/tenure/internal/pipenet"
)

// Region is the region of all buckets.
const Region = "us-east-1"

// Server answers without TLS and with any signature.
type Server struct {
	*Faults
	http    *httptest.Server
	network *pipenet.Network // nil for the loopback interface
}

// Start starts a server that holds these buckets in memory, with the faults of the plan. It listens
// on a port of the loopback interface. Close stops it.
func Start(seed uint64, plan Plan, buckets ...string) (*Server, error) {
	return start(seed, plan, buckets, net.Listen, nil)
}

// StartOn is Start on a network of pipes. With a network that was made in a bubble of
// testing/synctest, the server works in that bubble.
func StartOn(n *pipenet.Network, seed uint64, plan Plan, buckets ...string) (*Server, error) {
	listen := func(network, _ string) (net.Listener, error) { return n.Listen(network, "") }
	return start(seed, plan, buckets, listen, n)
}

func start(seed uint64, plan Plan, buckets []string,
	listen func(network, address string) (net.Listener, error), n *pipenet.Network) (*Server, error) {
	handler, err := Memory(buckets...)
	if err != nil {
		return nil, err
	}
	l, err := listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := Wrap(handler, seed, plan)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: f}}
	s := &Server{Faults: f, http: server, network: n}
	s.http.Start()
	return s, nil
}

// Memory returns a server without faults. It has two users; one of them has no rights.
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

// URL returns the endpoint.
func (s *Server) URL() string { return s.http.URL }

// Close waits for the requests under way, and ends the server and all its connections.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Client returns a new client of the server, with connections of its own.
func (s *Server) Client() *s3.Client { return s.ClientOf(s.URL()) }

// The users.
const (
	anybody = "test"
	nobody  = "nobody"
)

// ClientOf returns a new client of a relay to the server, at a URL, with connections of its own.
func (s *Server) ClientOf(url string) *s3.Client { return s.newClient(url, anybody) }

// Nobody returns a client without any rights.
func (s *Server) Nobody(url string) *s3.Client { return s.newClient(url, nobody) }

func (s *Server) newClient(url, user string) *s3.Client {
	o := s3.Options{
		Region:       Region,
		BaseEndpoint: &url,
		UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: user, SecretAccessKey: "testtest"}, nil
		}),
	}
	if s.network != nil {
		o.HTTPClient = s.network.Client()
	}
	return s3.New(o)
}
