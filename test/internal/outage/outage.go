// Package outage runs a handler in this process as a server that tests can stop, kill and pause.
package outage

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Host serves a handler on a port of the loopback interface. It keeps its port through outages.
// It must be made by Run.
type Host struct {
	handler http.Handler
	address string

	mu     sync.Mutex
	http   *http.Server  // nil while it is stopped
	paused chan struct{} // closed at the end of a pause; nil without one
}

// Run starts a server.
func Run(handler http.Handler) (*Host, error) {
	s := &Host{handler: handler, address: "127.0.0.1:0"}
	return s, s.Start()
}

// Address returns HOST:PORT.
func (s *Host) Address() string { return s.address }

// URL returns the address as a URL.
func (s *Host) URL() string { return "http://" + s.address }

// Addresses returns Address, for a rig.Running.
func (s *Host) Addresses() []string { return []string{s.address} }

// End is Kill, for a rig.Running.
func (s *Host) End() { _ = s.Kill() }

// Start listens again.
func (s *Host) Start() error {
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
func (s *Host) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	paused := s.paused
	s.mu.Unlock()
	if paused != nil {
		<-paused
	}
	s.handler.ServeHTTP(w, r)
}

// Stop answers the requests under way, and listens no longer.
func (s *Host) Stop() error {
	h := s.take()
	if h == nil {
		return nil
	}
	_ = s.Resume()
	return h.Shutdown(context.Background())
}

// Kill ends all connections, and listens no longer.
func (s *Host) Kill() error {
	h := s.take()
	if h == nil {
		return nil
	}
	_ = s.Resume()
	return h.Close()
}

func (s *Host) take() *http.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.http
	s.http = nil
	return h
}

// Pause holds all requests until Resume.
func (s *Host) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused == nil {
		s.paused = make(chan struct{})
	}
	return nil
}

// Resume carries the held requests out.
func (s *Host) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused != nil {
		close(s.paused)
		s.paused = nil
	}
	return nil
}
