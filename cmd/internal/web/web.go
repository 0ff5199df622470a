// Package web serves what the command shows to browsers and scrapers, with limits that keep them
// from disturbing an election.
package web

import (
	"cmp"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver/reread"
	"github.com/tenure-go/tenure/internal/problem"
	"golang.org/x/net/netutil"
)

// Flags are those of one server. Name is the name of the first flag, which turns the server on; the
// names of the others begin with it. Address is the default of the first; if it is empty the server
// is off by default.
type Flags struct {
	Name, Address string
	// Connections is how many clients are served at once: 128 by default.
	Connections int
	// Unix lets the first flag name a socket in the file system, as unix:PATH.
	Unix bool
	// Problems lets the server refuse requests in JSON, for programs, and not in plain text.
	Problems bool

	listen, cert, key, token string
}

func (w *Flags) flagCert() string  { return w.Name + "-cert" }
func (w *Flags) flagKey() string   { return w.Name + "-key" }
func (w *Flags) flagToken() string { return w.Name + "-token-file" }

// Define adds the flags to those of a command. The word what in the help names the served pages.
func (w *Flags) Define(f *pflag.FlagSet, what string) {
	address := "[HOST:]PORT"
	if w.Unix {
		address = "unix:PATH, for processes of this user alone, or " + address
	}
	f.StringVar(&w.listen, w.Name, w.Address, address+" to serve "+what+" at; without a host on loopback alone; port 0: a free one")
	f.StringVar(&w.cert, w.flagCert(), "", "file with the certificate of this server, in PEM; with --"+w.flagKey()+" the server speaks TLS, and reads both files again for each connection")
	f.StringVar(&w.key, w.flagKey(), "", "file with the key of --"+w.flagCert())
	f.StringVar(&w.token, w.flagToken(), "", "file with a token that requests must show, as \"Authorization: Bearer TOKEN\" or as a password; it is read again for each request")
}

// Settings returns the settings of the flags, nil without the first. Named returns the source of a
// flag: its own name or a variable of the environment.
func (w *Flags) Settings(named func(flag string) string) (*Settings, error) {
	if w.listen == "" {
		return nil, w.alone(named)
	}
	address, err := w.parse(w.listen)
	if err != nil {
		return nil, wrong(w.examples(), "%s %s: %w", named(w.Name), fault.Quote(w.listen), err)
	}
	s := &Settings{
		name: named(w.Name), address: address, connections: cmp.Or(w.Connections, usualConnections),
		cert: w.cert, key: w.key, token: w.token, problems: w.Problems,
	}
	if (w.cert == "") != (w.key == "") {
		return nil, wrong("give both, or none for plain HTTP", "%s and %s go together", named(w.flagCert()), named(w.flagKey()))
	}
	if s.pair, err = s.readPair(context.Background()); err != nil {
		return nil, wrong("give a certificate and its own key, both in PEM", "%s %s, %s %s: %w", named(w.flagCert()), w.cert, named(w.flagKey()), w.key, err)
	}
	if s.secret, err = s.readSecret(context.Background()); err != nil {
		return nil, wrong("put the token into the file, alone on one line", "%s %s: %w", named(w.flagToken()), w.token, err)
	}
	return s, nil
}

func wrong(hint, format string, args ...any) error {
	return fault.OfValue(fault.New(hint, format, args...))
}

// alone returns an error if another flag is given without the first.
func (w *Flags) alone(named func(string) string) error {
	for _, f := range []struct{ flag, value string }{{w.flagCert(), w.cert}, {w.flagKey(), w.key}, {w.flagToken(), w.token}} {
		if f.value != "" {
			return fault.OfUsage(fmt.Errorf("%s needs --%s", named(f.flag), w.Name))
		}
	}
	return nil
}

func (w *Flags) examples() string {
	text := "give a port such as 9464, or a host and a port such as 0.0.0.0:9464"
	if w.Unix {
		text += ", or a socket such as unix:/run/tenure/agent.sock"
	}
	return text
}

// parse adds the loopback address to a port without a host.
func (w *Flags) parse(value string) (string, error) {
	if path, ok := unixPath(value); ok && w.Unix {
		if path == "" {
			return "", errors.New("names no path")
		}
		return value, nil
	}
	host, port := "127.0.0.1", value
	if strings.Contains(value, ":") {
		var err error
		if host, port, err = net.SplitHostPort(value); err != nil {
			return "", errors.New("is not HOST:PORT")
		}
		if host == "" {
			host = "127.0.0.1"
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", errors.New("the port is not a number from 0 to 65535")
	}
	return net.JoinHostPort(host, port), nil
}

// Settings are those of one server.
type Settings struct {
	name             string // of the flag, for errors
	address          string
	connections      int
	cert, key, token string // files; empty: none
	problems         bool   // see Flags

	// what the files held at first
	pair   *tls.Certificate
	secret string
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
	l, err := s.listen()
	if err != nil {
		return nil, err
	}
	at, isTCP := l.Addr().(*net.TCPAddr)
	w := &Server{URL: s.scheme() + "://" + l.Addr().String(), Loopback: !isTCP || at.IP.IsLoopback(), done: make(chan struct{})}
	if !isTCP {
		w.URL = s.address
	}
	live := s.live(log)
	w.http = http.Server{
		Handler: s.guarded(h, live, isTCP && w.Loopback), ReadTimeout: headerWithin, ReadHeaderTimeout: headerWithin, WriteTimeout: answerWithin,
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

func (s *Settings) listen() (net.Listener, error) {
	if path, ok := unixPath(s.address); ok {
		l, err := listenUnix(path)
		if err != nil {
			return nil, fault.New("choose a path in a directory that exists and that this user may write", "%s %s: %w", s.name, s.address, err)
		}
		return l, nil
	}
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return nil, fault.New("choose an address of this machine and a port that no other process has", "%s %s: %w", s.name, s.address, err)
	}
	return l, nil
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

// readPair reads the certificate and its key; nil if there are none.
func (s *Settings) readPair(context.Context) (*tls.Certificate, error) {
	if s.cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	return &pair, err
}

// readSecret reads the token; empty if there is none.
func (s *Settings) readSecret(context.Context) (string, error) {
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

func (s *Settings) live(log *slog.Logger) liveFiles {
	stale := func(err error) {
		log.Warn("a certificate or a token cannot be read again: the last one stays in use", "address", s.address, "cause", err)
	}
	return liveFiles{reread.New(s.pair, s.readPair, stale), reread.New(s.secret, s.readSecret, stale)}
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
			s.refuse(w, http.StatusUnauthorized, "the token is missing or wrong", "send Authorization: Bearer TOKEN")
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (s *Settings) refuse(w http.ResponseWriter, status int, why, remedy string) {
	if !s.problems {
		http.Error(w, why+": "+remedy, status)
		return
	}
	p := problem.Problem{Title: http.StatusText(status), Status: status, Detail: why, Remedy: remedy}
	p.Answer(w)
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
			s.refuse(w, http.StatusMisdirectedRequest, s.name+" is on loopback and has no token",
				"use localhost or an IP address, or let a proxy send that as Host")
			return
		}
		h.ServeHTTP(w, r)
	})
}
