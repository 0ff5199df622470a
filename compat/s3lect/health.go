package s3lect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// NewLeadershipHandler returns the handler for requests of peers. Mount it on
// elector.GetConfig().PeerHealthPath of a server with TLS. If this process leads and its lease is
// valid now, the handler answers with the lockfile; if the elector is not an *S3Elector, with its
// status. Otherwise it answers 404. A nil logger means slog.Default().
func NewLeadershipHandler(elector Elector, logger *slog.Logger) http.HandlerFunc {
	if e, ok := elector.(*S3Elector); ok && e.peers != nil {
		return e.peers.Handler().ServeHTTP
	}
	if logger == nil {
		logger = slog.Default()
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "leadership is only told", http.StatusMethodNotAllowed)
			return
		}
		status := elector.GetLeadershipStatus()
		if status == nil || !status.IsLeader {
			http.Error(w, "not the leader", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		record := LeaderRecord{LeaderID: status.LeaderID, LeaderAddr: status.LeaderAddr, LastUpdated: status.LeaderLastSeen}
		if err := json.NewEncoder(w).Encode(record); err != nil {
			logger.Debug("s3lect: a peer left before it was answered", "error", err)
		}
	}
}

// HealthServerConfig holds the settings of a HealthServer. A nil Logger means slog.Default().
type HealthServerConfig struct {
	// BindAddress is the address to listen on, such as "0.0.0.0:8993".
	BindAddress string
	// Certificate must be valid for the host in the elector's ServerAddr.
	Certificate tls.Certificate
	Elector     Elector
	Logger      *slog.Logger
}

// HealthServer is an HTTPS server for NewLeadershipHandler alone. It must be made by
// NewHealthServer, and can be started once.
type HealthServer struct {
	log     *slog.Logger
	server  *http.Server
	address string
	end     context.CancelFunc // of the requests being served

	mu       sync.Mutex
	listener net.Listener // nil before Start
}

const healthTimeout = 10 * time.Second

// NewHealthServer returns a server, which the caller must start. It returns an error if the
// address, the elector or the certificate is missing.
func NewHealthServer(config HealthServerConfig) (*HealthServer, error) {
	switch {
	case config.BindAddress == "":
		return nil, errors.New("s3lect: BindAddress is empty")
	case config.Elector == nil:
		return nil, errors.New("s3lect: Elector is nil")
	case len(config.Certificate.Certificate) == 0:
		return nil, errors.New("s3lect: Certificate is empty")
	}
	h := &HealthServer{log: config.Logger, address: config.BindAddress}
	if h.log == nil {
		h.log = slog.Default()
	}
	life, end := context.WithCancel(context.Background())
	h.end = end
	mux := http.NewServeMux()
	mux.HandleFunc(config.Elector.GetConfig().PeerHealthPath, NewLeadershipHandler(config.Elector, h.log))
	h.server = &http.Server{
		Handler:     mux,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{config.Certificate}, MinVersion: tls.VersionTLS12},
		ReadTimeout: healthTimeout, WriteTimeout: healthTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10,
		BaseContext: func(net.Listener) context.Context { return life },
		ErrorLog:    slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
	}
	return h, nil
}

// Start listens, and serves in the background until Stop. The context bounds only the set-up of the
// listener. Start returns an error if it cannot listen on the address, or if the server was started
// before.
func (h *HealthServer) Start(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener != nil {
		return errors.New("s3lect: the health server was started already")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", h.address)
	if err != nil {
		return fmt.Errorf("s3lect: %w", err)
	}
	h.listener = l
	go func() {
		if err := h.server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			h.log.Error("s3lect: the health server gave up", "error", err)
		}
	}()
	return nil
}

// Addr returns the address on which the server listens, nil before Start.
func (h *HealthServer) Addr() net.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener == nil {
		return nil
	}
	return h.listener.Addr()
}

// Stop ends the streams to followers, and the server. If a connection does not end before ctx does,
// Stop closes it and returns ctx's error. Stop the elector first, so that its followers still
// receive the release.
func (h *HealthServer) Stop(ctx context.Context) error {
	if h.Addr() == nil {
		return nil
	}
	h.end()
	err := h.server.Shutdown(ctx)
	if err != nil {
		_ = h.server.Close()
	}
	return err
}

// hostReader is the store below the peers of one election. It remembers the leader's host from the
// lockfile that was read last: the host that the peers dial.
type hostReader struct {
	driver.Store
	host atomic.Pointer[string]
}

// Abilities returns those of the store. It is polled, so its entries pass through Read.
func (h *hostReader) Abilities() driver.Abilities { return driver.AbilitiesOf(h.Store) }

func (h *hostReader) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := h.Store.Read(ctx, key)
	if err == nil {
		host := ""
		if d, ok := parse(e.Value); ok {
			host = hostOf(d.fields.LeaderAddr)
		}
		h.host.Store(&host)
	}
	return e, err
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// leader returns the leader's host, empty if there is none.
func (h *hostReader) leader() string {
	if host := h.host.Load(); host != nil {
		return *host
	}
	return ""
}

// privateNetworks are loopback and the private networks of IPv4 and IPv6. Link-local addresses are
// not among them, because clouds serve credentials there to every process.
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
}

var (
	errNoCertificate = errors.New("s3lect: PeerCACert holds no certificate in PEM")
	errNoHost        = errors.New("s3lect: the host of the leader is not known, so its certificate cannot be checked")
)

// roots are the authorities that may sign a leader's certificate. Unlike those in a tls.Config,
// they can be changed while connections are made.
type roots struct{ pool atomic.Pointer[x509.CertPool] }

func (r *roots) set(pem []byte) error {
	pool, err := parseRoots(pem)
	if err == nil {
		r.pool.Store(pool)
	}
	return err
}

// parseRoots returns nil for empty input: then the authorities are those of the system.
func parseRoots(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errNoCertificate
	}
	return pool, nil
}

// client returns the configuration for dialing leaders. It switches the check of crypto/tls off and
// calls verify instead, for each connection, resumed ones too. If a leader is dialed by IP address,
// crypto/tls does not report that address, so the function leader returns it.
func (r *roots) client(leader func() string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			host := cs.ServerName
			if host == "" {
				host = leader()
				if net.ParseIP(host) == nil {
					return errNoHost
				}
			}
			return r.verify(host, cs.PeerCertificates)
		},
	}
}

// verify makes the same check as crypto/tls: the certificate is signed by one of the authorities,
// valid now, and for this host.
func (r *roots) verify(host string, chain []*x509.Certificate) error {
	opts := x509.VerifyOptions{Roots: r.pool.Load(), DNSName: host, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(opts)
	return err
}
