package s3d

import (
	"net"
	"net/http"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

// stub is a server in this process that serves any user and ignores all conditions.
type stub struct {
	server   http.Server
	listener net.Listener
}

func newStub(port int) (*stub, error) {
	honest, err := s3fake.Memory()
	if err != nil {
		return nil, err
	}
	s := &stub{server: http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Match")
		r.Header.Del("If-None-Match")
		honest.ServeHTTP(w, r)
	})}}
	if s.listener, err = net.Listen("tcp", ports.Address(port)); err != nil {
		return nil, err
	}
	go func() { _ = s.server.Serve(s.listener) }()
	return s, nil
}

func (s *stub) url() string { return "http://" + s.listener.Addr().String() }
func (s *stub) close()      { _ = s.server.Close() }
