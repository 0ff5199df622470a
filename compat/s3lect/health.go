package s3lect

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
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
