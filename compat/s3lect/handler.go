package s3lect

import (
	"encoding/json"
	"log/slog"
	"net/http"
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
