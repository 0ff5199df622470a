package web

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver/reread"
	"golang.org/x/net/netutil"
)

// Settings are those of one server.
type Settings struct {
	name             string // of the flag, for errors
	address          string
	connections      int
	cert, key, token string // files; empty: none
}

// The limits of a server. More clients wait, and slow ones are cut off, so they cost little memory.
const (
	usualConnections = 128
	headerWithin     = 2 * time.Second  // from a request's first byte to the last of its header
	answerWithin     = 10 * time.Second // from there to the last byte of the answer
	idleFor          = time.Minute
	maxHeader        = 16 << 10
)

// Server is a server that listens.
type Server struct {
	// URL is its address.
	URL string
	// Loopback reports whether other machines cannot reach it.
	Loopback bool
	http     http.Server
	done     chan struct{}
}

// Open listens, and serves until Close. Failures of single connections are logged for debugging.
func (s *Settings) Open(h http.Handler, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return nil, fault.New("choose an address of this machine and a port that no other process has", "%s %s: %w", s.name, s.address, err)
	}
	at, _ := l.Addr().(*net.TCPAddr)
	w := &Server{URL: s.scheme() + "://" + l.Addr().String(), Loopback: at != nil && at.IP.IsLoopback(), done: make(chan struct{})}
	live, err := s.live(log)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	w.http = http.Server{
		Handler: s.guarded(h, live, w.Loopback), ReadTimeout: headerWithin, ReadHeaderTimeout: headerWithin, WriteTimeout: answerWithin,
		IdleTimeout: idleFor, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	l = netutil.LimitListener(l, s.connections)
	if s.cert != "" {
		w.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: live.certificate}
	}
	go func() {
		defer close(w.done)
		if err := w.serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("nothing is served any more", "address", s.address, "cause", err)
		}
	}()
	return w, nil
}

func (w *Server) serve(l net.Listener) error {
	if w.http.TLSConfig != nil {
		return w.http.ServeTLS(l, "", "")
	}
	return w.http.Serve(l)
}

// Close ends the server and all connections.
func (w *Server) Close() error {
	err := w.http.Close()
	<-w.done
	return err
}

func (s *Settings) scheme() string {
	if s.cert != "" {
		return "https"
	}
	return "http"
}

// pair reads the certificate and its key; nil if there are none.
func (s *Settings) pair(context.Context) (*tls.Certificate, error) {
	if s.cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	return &pair, err
}

// secret reads the token; empty if there is none.
func (s *Settings) secret(context.Context) (string, error) {
	if s.token == "" {
		return "", nil
	}
	return Secret(s.token)
}

// liveFiles are the contents of the files, which may be renewed.
type liveFiles struct {
	pair   *reread.Source[*tls.Certificate]
	secret *reread.Source[string]
}

func (s *Settings) live(log *slog.Logger) (liveFiles, error) {
	pair, err := s.pair(context.Background())
	if err != nil {
		return liveFiles{}, fmt.Errorf("%s: %w", s.name, err)
	}
	secret, err := s.secret(context.Background())
	if err != nil {
		return liveFiles{}, fmt.Errorf("%s: %w", s.name, err)
	}
	stale := func(err error) {
		log.Warn("a certificate or a token cannot be read again: the last one stays in use", "address", s.address, "cause", err)
	}
	return liveFiles{reread.New(pair, s.pair, stale), reread.New(secret, s.secret, stale)}, nil
}

func (l liveFiles) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return l.pair.Get(hello.Context()), nil
}

// Secret reads a token from a file.
func Secret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", errors.New("the file does not hold one word")
	}
	return token, nil
}

// HasToken reports whether requests must show a token.
func (s *Settings) HasToken() bool { return s.token != "" }

// guarded lets only requests with the token through, if there is one.
func (s *Settings) guarded(h http.Handler, live liveFiles, loopback bool) http.Handler {
	switch {
	case s.token == "" && loopback:
		return s.local(h)
	case s.token == "":
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := live.secret.Get(r.Context())
		scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if _, password, ok := r.BasicAuth(); ok {
			shown = password // browsers ask people for one
		} else if !strings.EqualFold(scheme, "Bearer") {
			shown = ""
		}
		if subtle.ConstantTimeCompare([]byte(shown), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="tenure", charset="UTF-8"`)
			http.Error(w, "the token is missing or wrong: send Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// local refuses host names other than localhost. Otherwise a foreign site could point its own name
// at this machine, and read the answers in the browser of a user here (DNS rebinding).
func (s *Settings) local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Host
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		if name != "" && name != "localhost" && net.ParseIP(strings.Trim(name, "[]")) == nil {
			http.Error(w, s.name+" is on loopback and has no token: use localhost or an IP address, or let a proxy send that as Host",
				http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}
