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
)

// requestGate counts the requests that are served, and ends all of them at Close.
type requestGate struct {
	closing chan struct{}

	mu      sync.Mutex
	closed  bool
	servers []*http.Server
	running sync.WaitGroup // of servers
	inside  sync.WaitGroup // of streams
}

func newRequestGate() *requestGate { return &requestGate{closing: make(chan struct{})} }

// enter counts a request. It is false once the gate is closed.
func (e *requestGate) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.inside.Add(1)
	}
	return !e.closed
}

func (e *requestGate) leave() { e.inside.Done() }

// open counts a server in.
func (e *requestGate) open(server *http.Server) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.servers = append(e.servers, server)
		e.running.Add(1)
	}
	return !e.closed
}

// close lets the streams send their last event, within the timeout of writes, before the
// connections are closed.
func (e *requestGate) close(within time.Duration) {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.closing)
	}
	servers := e.servers
	e.mu.Unlock()
	waitForStreams(&e.inside, within)
	for _, s := range servers {
		_ = s.Close()
	}
	e.running.Wait()
}

// waitForStreams gives up on streams of a server that sets no deadlines: they end when their
// followers leave.
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

// Serve answers on Config.Path of the listener, over HTTPS if Config.ServerTLS is set, until Close.
// After Close it returns nil. It returns the listener's error if that fails, and an error if Close
// came before it. It closes the listener.
func (s *Store) Serve(l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle(s.cfg.Path, s.Handler())
	refused := &serverLog{cfg: &s.cfg}
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: s.cfg.Timeout,
		ReadTimeout:       s.cfg.Timeout,
		WriteTimeout:      s.cfg.Timeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          log.New(refused, "", 0),
	}
	if !s.doors.open(server) {
		_ = l.Close()
		return errClosed
	}
	defer s.doors.running.Done()
	err := serve(server, &connLimiter{Listener: l, most: s.cfg.MaxConnections, refused: refused.report}, s.cfg.ServerTLS)
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
	defer func() { _ = l.Close() }() // which ServeTLS does not do if the settings are of no use
	return server.ServeTLS(l, "", "")
}

// serverLog takes the lines of the server's log, such as that a handshake failed, and reports one
// at a time.
type serverLog struct {
	cfg *Config

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
	if due {
		c.last = now
	}
	c.mu.Unlock()
	if due {
		c.cfg.OnError("", fmt.Errorf("peer: %w", err))
	}
}
