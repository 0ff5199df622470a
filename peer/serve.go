package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
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

// Handler serves the records of the elections that this process leads. It ignores the path: mount
// it on Config.Path of an existing server.
//
//	GET /health/leadership?election=billing    200 with the record's bytes, its version as ETag
//	GET /health/leadership                     the same, if this process leads exactly one election
//	Accept: text/event-stream                  a stream: the present state, then each write of the leader
//	Tenure-Challenge: 32 bytes in base64url    adds the proof: as header Tenure-Proof, or as "proof"
//	                                           of each event
//
// It answers 404 if this process does not lead, or its lease is not valid now; 400 for a malformed
// challenge, and for a request without election if this process leads several; 405 unless the
// method is GET or HEAD. A stream gets 503 beyond Config.MaxStreams or Config.MaxStreamsPerAddress,
// and after Close. The server's own WriteTimeout and ReadTimeout do not end streams.
func (s *Store) Handler() http.Handler { return http.HandlerFunc(s.answer) }

func (s *Store) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "use GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	challenge, err := parseChallenge(r.Header.Get(challengeHeader))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key, ok := s.requestedKey(w, r)
	if !ok {
		return
	}
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), eventStream) {
		s.stream(w, r, key, challenge)
		return
	}
	s.answerOnce(w, key, challenge)
}

// requestedKey returns the key that a request asks for. If there is none, it answers the request.
func (s *Store) requestedKey(w http.ResponseWriter, r *http.Request) (key string, ok bool) {
	if query := r.URL.Query(); query.Has("election") {
		return query.Get("election"), true
	}
	switch keys := s.books.led(); len(keys) {
	case 0:
		notLed(w)
		return "", false
	case 1:
		return keys[0], true
	default:
		slices.Sort(keys)
		http.Error(w, fmt.Sprintf("several elections are led here: name one, as in ?election=%s", url.QueryEscape(keys[0])),
			http.StatusBadRequest)
		return "", false
	}
}

func notLed(w http.ResponseWriter) {
	http.Error(w, "not led here, or not by a lease that is valid now", http.StatusNotFound)
}

// answerOnce sends one record, not a stream.
func (s *Store) answerOnce(w http.ResponseWriter, key string, challenge []byte) {
	_, p := s.books.look(key)
	if p == nil {
		notLed(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(p.value)))
	h.Set("ETag", `"`+escape(p.version)+`"`)
	if challenge != nil {
		h.Set(proofHeader, s.prove(key, p, challenge, 0))
	}
	_, _ = w.Write(p.value) // for HEAD, the server drops the body
}

func (s *Store) prove(key string, p *leaderWrite, challenge []byte, place uint64) string {
	return s.keys.prove(p.record.Incarnation, statement{
		challenge: challenge, place: place, key: key, version: p.version, value: p.value,
	})
}

// stream sends a follower the current write and then each later one, until there is none. It runs
// in the request's own goroutine. It never waits for a follower: one that reads slowly misses
// writes in between.
func (s *Store) stream(w http.ResponseWriter, r *http.Request, key string, challenge []byte) {
	seat, p := s.books.look(key)
	if p == nil {
		notLed(w)
		return
	}
	if !s.gate.enter() {
		http.Error(w, "closing", http.StatusServiceUnavailable)
		return
	}
	defer s.gate.leave()
	origin := originOf(r.RemoteAddr)
	if !s.books.enter(seat, origin, &s.cfg) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many followers of this election, in all or from this address", http.StatusServiceUnavailable)
		return
	}
	defer s.books.leave(seat, origin)
	w.Header().Set("Content-Type", eventStream)
	// makes some proxies pass events on at once
	w.Header().Set("X-Accel-Buffering", "no")
	o := &streamWriter{w: w, control: http.NewResponseController(w), timeout: s.cfg.Timeout}
	s.sendWrites(r.Context(), seat, o, func(p *leaderWrite, place uint64) string {
		if challenge == nil {
			return ""
		}
		return s.prove(key, p, challenge, place)
	})
}

// sendWrites sends until the follower leaves or a write to it fails, the term or its lease is over,
// or the store is closed. It still sends a write that came before Close, because a leader that
// shuts down releases and then closes.
func (s *Store) sendWrites(ctx context.Context, seat *keyState, o *streamWriter, prove func(*leaderWrite, uint64) string) {
	var last *leaderWrite
	for place, open := uint64(1), true; ; {
		p, changed := s.books.next(seat)
		if p == nil || p == last && !open {
			return
		}
		text := []byte(heartbeat)
		if p != last {
			text = event{version: p.version, value: p.value, proof: prove(p, place)}.bytes()
			place++
		}
		if o.write(text) != nil || p.record.Released {
			return
		}
		last = p
		open = s.waitForWrite(ctx, changed, p)
	}
}

// waitForWrite waits for the next write or until a heartbeat is due, but not longer than the lease
// is valid.
func (s *Store) waitForWrite(ctx context.Context, changed <-chan struct{}, p *leaderWrite) bool {
	beat := time.NewTimer(max(time.Millisecond, min(p.record.Lease/3, s.books.left(p))))
	defer beat.Stop()
	select {
	case <-changed:
	case <-beat.C:
	case <-ctx.Done():
		return false
	case <-s.gate.closing:
		return false
	}
	return true
}

// streamWriter writes to one follower.
type streamWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// write sends the text at once. A follower that does not take it within the timeout is cut off, if
// the server supports deadlines. The deadline is removed afterwards, since some servers end a
// stream when it passes, even if nothing is written.
func (o *streamWriter) write(text []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	if err := o.control.Flush(); err != nil {
		// also if the server cannot flush: the follower gets this write when the answer ends
		return err
	}
	_ = o.control.SetWriteDeadline(time.Time{})
	return nil
}

// originOf returns the origin of a request by its address: a host, or the /64 network of an IPv6
// address, since one owner can choose all addresses of it.
func originOf(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is6() {
		network, _ := ip.Prefix(64) // no error: 64 bits are valid for IPv6
		return network.String()
	}
	return ip.String()
}

// originCounter counts connections or streams, in all and by origin.
type originCounter struct {
	all      int
	byOrigin map[string]int
}

// add counts one more, unless a limit is reached.
func (t *originCounter) add(origin string, most, mostFrom int) bool {
	if t.all >= most || t.byOrigin[origin] >= mostFrom {
		return false
	}
	if t.byOrigin == nil {
		t.byOrigin = map[string]int{}
	}
	t.all++
	t.byOrigin[origin]++
	return true
}

func (t *originCounter) drop(origin string) {
	t.all--
	if t.byOrigin[origin]--; t.byOrigin[origin] == 0 {
		delete(t.byOrigin, origin)
	}
}

var errTooManyConns = errors.New("too many connections")

// connLimiter is a listener that bounds connections. One origin gets half of them at most, so that
// it cannot keep others out.
type connLimiter struct {
	net.Listener
	most    int
	refused func(error)

	mu   sync.Mutex
	open originCounter
}

// Accept closes connections beyond the limits. If they waited instead, they would keep others out.
func (c *connLimiter) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		origin := originOf(conn.RemoteAddr().String())
		if c.enter(origin) {
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { c.left(origin) })}, nil
		}
		_ = conn.Close()
		c.refused(fmt.Errorf("%w: one from %s was closed (Config.MaxConnections)", errTooManyConns, origin))
	}
}

func (c *connLimiter) enter(origin string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open.add(origin, c.most, (c.most+1)/2)
}

func (c *connLimiter) left(origin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open.drop(origin)
}

// limitedConn is a connection that the limiter counts until it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection and stops counting it.
func (g *limitedConn) Close() error {
	defer g.leave()
	return g.Conn.Close()
}
