package s3lect

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// Elector is S3lect's interface, which *S3Elector implements.
type Elector interface {
	// Start begins to campaign. When the context ends, the elector gives up leadership and ends.
	Start(ctx context.Context) error
	// Stop gives up leadership and ends the elector.
	Stop() error
	// IsLeader reports whether this process leads and its lease is valid now.
	IsLeader() bool
	// WaitForLeadership returns nil once this process leads and OnAcquireLeadership has returned.
	WaitForLeadership(ctx context.Context) error
	// WaitForNextElection returns the status once this process has seen the lockfile's state at a
	// time after since; with the zero time, at any time.
	WaitForNextElection(ctx context.Context, since time.Time) (*LeadershipStatus, error)
	// LeaderID returns the ServerID of the leader, empty while none is known.
	LeaderID() string
	// GetLeadershipStatus returns a snapshot.
	GetLeadershipStatus() *LeadershipStatus
	// EnablePeerMode turns on PeerMode; caCert becomes PeerCACert.
	EnablePeerMode(caCert []byte) error
	// UpdateConfig changes the settings of a running elector.
	UpdateConfig(newConfig ElectorConfig) error
	// GetConfig returns a copy of the present settings.
	GetConfig() *ElectorConfig
}

// LeadershipStatus is a snapshot of an elector.
type LeadershipStatus struct {
	ServerID     string `json:"serverID"`
	LockfilePath string `json:"lockfilePath"`
	IsLeader     bool   `json:"isLeader"`
	// LeaderID and LeaderAddr are empty while no leader is known.
	LeaderID   string `json:"leaderID"`
	LeaderAddr string `json:"leaderAddr"`
	// LeaderLastSeen is when this process last heard of that leader, by its own clock.
	LeaderLastSeen time.Time `json:"leaderLastSeen"`
	// LastElectionTime is when this process was last elected; zero if never, or if
	// OnAcquireLeadership failed.
	LastElectionTime time.Time `json:"lastElectionTime"`
	// ConsecutiveFails is how many store operations failed in a row.
	ConsecutiveFails int `json:"consecutiveFails"`
}

// LeaderRecord is the lockfile as S3lect knows it.
type LeaderRecord struct {
	LeaderID    string               `json:"leaderID,omitempty"`
	LeaderAddr  string               `json:"leaderAddr,omitempty"`
	LastUpdated time.Time            `json:"lastUpdated"`
	Metadata    LeaderRecordMetadata `json:"-"`
}

// LeaderRecordMetadata is the metadata of a lockfile.
type LeaderRecordMetadata struct {
	ETag string
}

// S3ElectorOptions are the options of NewS3Elector. Only Config is required. S3lect does not have
// the fields after Logger.
type S3ElectorOptions struct {
	Config *ElectorConfig
	// Storage holds the lockfile. If Storage and Store are nil, Config.LockfilePath must name an S3
	// bucket, and the AWS SDK's configuration is used.
	Storage Storage
	// Logger logs all events. Nil: slog.Default().
	Logger *slog.Logger

	// Store holds the lockfile in place of Storage: any of Tenure's stores. With s3object.Store a
	// renewal costs fewer requests, and tokens grow even if the lockfile is lost.
	Store driver.Store
	// MaxSkew is as in LegacyConfig.
	MaxSkew time.Duration
	// PeerNetworks are the networks whose addresses may be dialed in PeerMode. Nil: loopback and
	// private addresses (127/8, ::1, 10/8, 172.16/12, 192.168/16, fc00::/7). These do not include
	// the addresses where clouds serve credentials.
	PeerNetworks []netip.Prefix
	// Configure is called with the finished settings of the election, and may change them: when the
	// elector is made, and at each update. Use it for settings that S3lect does not have, such as
	// Metadata, StopWithin or OnEvent. It must not call the elector.
	Configure func(*tenure.Config)
}
