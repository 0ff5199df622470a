package peer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/loglimit"
)

// requestGate counts the requests that are served, and ends all of them at Close.
type requestGate struct {
	closing chan struct{}

	mu      sync.Mutex
	closed  bool
	servers []*http.Server
	running sync.WaitGroup // of servers
	streams sync.WaitGroup // of streams
}

func newRequestGate() *requestGate { return &requestGate{closing: make(chan struct{})} }

// enter counts a request. It returns false once the gate is closed.
func (e *requestGate) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.streams.Add(1)
	}
	return !e.closed
}

func (e *requestGate) leave() { e.streams.Done() }

// open adds a server. It returns false once the gate is closed.
func (e *requestGate) open(server *http.Server) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.servers = append(e.servers, server)
		e.running.Add(1)
	}
	return !e.closed
}

// close waits for the streams to send their last event, for the given time, and then closes the
// connections.
func (e *requestGate) close(within time.Duration) {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.closing)
	}
	servers := e.servers
	e.mu.Unlock()
	waitForStreams(&e.streams, within)
	for _, s := range servers {
		_ = s.Close()
	}
	e.running.Wait()
}

// waitForStreams waits for the streams, but not longer: on a server without deadlines they end only
// when their followers leave.
func waitForStreams(streams *sync.WaitGroup, within time.Duration) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		streams.Wait()
	}()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	}
}

// Serve answers on Config.Path of the listener, over HTTPS if Config has TLS for servers, until
// Close. After Close it returns nil. It returns the error of the listener if the listener fails,
// and an error if Close was called before Serve. It closes the listener.
func (s *Store) Serve(l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle(s.cfg.Path, s.Handler())
	refused := &serverLog{cfg: &s.cfg, begun: time.Now()}
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: s.cfg.Timeout,
		ReadTimeout:       s.cfg.Timeout,
		WriteTimeout:      s.cfg.Timeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          log.New(refused, "", 0),
	}
	if !s.gate.open(server) {
		_ = l.Close()
		return errClosed
	}
	defer s.gate.running.Done()
	secure := s.cfg.ServerTLS
	if secure != nil && s.certs != nil {
		secure = &tls.Config{GetConfigForClient: s.certs.server}
	}
	err := serve(server, &connLimiter{Listener: l, most: s.cfg.MaxConnections, refused: refused.report}, secure)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func serve(server *http.Server, l net.Listener, secure *tls.Config) error {
	if secure == nil {
		return server.Serve(l)
	}
	server.TLSConfig = secure.Clone()
	defer func() { _ = l.Close() }() // ServeTLS does not do it if the TLS settings are invalid
	return server.ServeTLS(l, "", "")
}

// serverLog reports the lines of the server's log, such as a failed handshake: at most one within
// Config.Retry. Lines that differ only in the address of the client have one cause.
type serverLog struct {
	cfg    *Config
	begun  time.Time
	causes loglimit.Limiter

	mu   sync.Mutex
	last time.Time
}

// Write takes one line.
func (c *serverLog) Write(line []byte) (int, error) {
	c.report(errors.New(strings.TrimSpace(string(line))))
	return len(line), nil
}

func (c *serverLog) report(err error) {
	c.mu.Lock()
	now := time.Now()
	due := c.last.IsZero() || now.Sub(c.last) >= c.cfg.Retry
	if due = due && c.causes.Admit(loglimit.Cause(err.Error(), ""), now.Sub(c.begun)) > 0; due {
		c.last = now
	}
	c.mu.Unlock()
	if due {
		c.cfg.OnError("", fmt.Errorf("peer: %w", err))
	}
}
