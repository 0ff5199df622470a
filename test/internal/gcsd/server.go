// Package gcsd runs servers that speak the protocol of Google Cloud Storage: one of this project,
// with rights and faults, and the emulator fake-gcs-server. The cloud itself is in no test.
package gcsd

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/tenure-go/tenure/internal/test/gcsfake"
)

// Server is a gcsfake.Server on a port of the loopback interface. It keeps its objects and its port
// through outages.
type Server struct {
	*gcsfake.Server
	address string

	mu     sync.Mutex
	http   *http.Server  // nil while it is stopped
	paused chan struct{} // closed at the end of a pause; nil without one
}

// Run starts a server with these buckets.
func Run(buckets ...string) (*Server, error) {
	s := &Server{Server: gcsfake.New(buckets...), address: "127.0.0.1:0"}
	return s, s.Start()
}

// Address returns HOST:PORT.
func (s *Server) Address() string { return s.address }

// URL returns the endpoint.
func (s *Server) URL() string { return "http://" + s.address }

// Start listens again.
func (s *Server) Start() error {
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = l.Addr().String()
	s.http = &http.Server{Handler: http.HandlerFunc(s.answer)}
	go func(h *http.Server) { _ = h.Serve(l) }(s.http)
	return nil
}

// answer carries out a request when there is no pause. A request that has arrived is carried out
// also if its sender is gone.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	paused := s.paused
	s.mu.Unlock()
	if paused != nil {
		<-paused
	}
	s.ServeHTTP(w, r)
}

// Stop answers the requests under way, and listens no longer.
func (s *Server) Stop() error {
	h := s.take()
	if h == nil {
		return nil
	}
	_ = s.Resume()
	return h.Shutdown(context.Background())
}

// Kill ends all connections, and listens no longer.
func (s *Server) Kill() error {
	h := s.take()
	if h == nil {
		return nil
	}
	_ = s.Resume()
	return h.Close()
}

func (s *Server) take() *http.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.http
	s.http = nil
	return h
}

// Pause holds all requests until Resume.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused == nil {
		s.paused = make(chan struct{})
	}
	return nil
}

// Resume carries the held requests out.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused != nil {
		close(s.paused)
		s.paused = nil
	}
	return nil
}
