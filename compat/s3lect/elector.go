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
	// Start begins to campaign. The context is the elector's life: when it ends, leadership is
	// given up.
	Start(ctx context.Context) error
	// Stop gives up leadership and ends the elector.
	Stop() error
	// IsLeader reports whether this process leads now, by a lease that is valid now.
	IsLeader() bool
	// WaitForLeadership returns nil once this process leads and OnAcquireLeadership has returned.
	WaitForLeadership(ctx context.Context) error
	// WaitForNextElection returns the status once the lockfile was seen after the given time; the
	// zero time means ever.
	WaitForNextElection(ctx context.Context, since time.Time) (*LeadershipStatus, error)
	// LeaderID is the ServerID of the leader, empty while none is known.
	LeaderID() string
	// GetLeadershipStatus returns a snapshot.
	GetLeadershipStatus() *LeadershipStatus
	// EnablePeerMode turns on PeerMode with these authorities.
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

// S3ElectorOptions are the parts of an elector. Config is required, the others are not; the fields
// after Logger are not S3lect's.
type S3ElectorOptions struct {
	Config *ElectorConfig
	// Storage holds the lockfile. Without it, and without Store, Config.LockfilePath names a bucket
	// of S3, which is reached as the AWS SDK is configured.
	Storage Storage
	// Logger logs all events. Nil: slog.Default().
	Logger *slog.Logger

	// Store holds the lockfile instead of Storage: s3object.Store, which costs fewer requests and
	// lets tokens grow even if the lockfile is lost, or any other of Tenure's stores.
	Store driver.Store
	// MaxSkew is LegacyConfig's.
	MaxSkew time.Duration
	// PeerNetworks are the networks whose addresses may be dialed in PeerMode. Nil: loopback and
	// private addresses (127/8, ::1, 10/8, 172.16/12, 192.168/16, fc00::/7), and so not those where
	// clouds serve credentials.
	PeerNetworks []netip.Prefix
	// Configure changes the settings of the election last, at the beginning and with each update,
	// where S3lect has no setting, such as for Metadata, StopWithin or OnEvent. It must not call
	// the elector.
	Configure func(*tenure.Config)
}
