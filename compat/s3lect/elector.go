// Package s3lect is for programs that use S3lect, a library for elections over object storage, and
// move to Tenure. It has S3lect's API, and works with its storages and its lockfile.
//
//   - [NewS3Elector] and its types are S3lect's API. A program moves by changing its import.
//   - [FromStorage] makes a store for any election from a storage that was written for S3lect;
//     [ToStorage] makes such a storage from a store.
//   - [Legacy] lets candidates share one lockfile with S3lect processes while a fleet moves over.
//
// docs/s3lect.md describes the move step by step.
//
// # Differences
//
// Names, fields and methods have S3lect's types. These differ in effect:
//
//   - IsLeader is true while the lease is valid by this process's own clock, and it is not
//     stopping. In S3lect it stays true until the next successful read of the lockfile, and after
//     Stop, so there are two leaders for as long as an outage lasts. For the same reason a failed
//     storage operation counts in ConsecutiveFails, and the lease runs out.
//   - Times of day decide nothing, except for S3lect processes that share the lockfile.
//   - Over a store of Tenure's, a server that ignores the conditions of writes elects no leader,
//     and the error gives the reason. A Storage of your own is not checked.
//   - An absent lockfile is waited out for LeaderTimeout, also at the first start, because a lease
//     may be valid although its record was deleted.
//   - LeaderTimeout is at least 2 s on object storage and leaves room for two renewals: 10.4 s for
//     a FrequentInterval of 5 s. Otherwise the error names the minimum.
//   - InfrequentInterval is used, up to LeaderTimeout; S3lect always reads every 5 s. So a release
//     is seen after up to 15 s with the defaults, or milliseconds in PeerMode.
//   - A nil Storage means S3 with the configuration of the AWS SDK; LockfilePath is then
//     s3://bucket/key.
//   - The context of OnAcquireLeadership ends with leadership. Work that needs longer takes
//     context.WithoutCancel. That of OnLoseLeadership lasts 5 s, also after Start's has ended.
//   - If OnLoseLeadership takes too long there is no release, and the lease runs out.
//   - After OnAcquireLeadership failed, this process campaigns again after LeaderTimeout, then
//     twice that, and so on up to ten times, so that others get a turn.
//   - When Start's context ends, leadership is given up as by Stop.
//   - Stop returns when hook and release are done, or after 10 s with an error. Start after Stop is
//     an error: make another elector.
//   - WaitForLeadership waits until this process leads, and WaitForNextElection until it has read
//     the lockfile or heard from a leader; failed reads do not count. Both return an error after
//     Stop.
//   - LeaderID and LeaderAddr are empty while nobody leads. LeaderLastSeen is by this process's
//     clock.
//   - UpdateConfig refuses another LockfilePath, ServerID, PeerHealthPath or PeerTimeout, and
//     settings that cannot work, and then changes nothing.
//   - Peers get each renewal and the release over one stream. A leader's answer must be signed by
//     the incarnation in the lockfile, and never ends or starts a lease by itself. Addresses
//     outside of loopback and private networks are dialed only if PeerNetworks has them. Redirects
//     are not followed.
//   - A PeerCACert or NewHealthServer without a certificate is an error. PeerHealthPath is a plain
//     path. HealthServer.Start returns an error if the address is in use.
//   - NewLeadershipHandler asks only GetLeadershipStatus of an elector of another kind; peers that
//     follow by stream need an S3Elector. Its lastUpdated is the time of the leader's last sign.
//   - Log messages are Tenure's events, and those of hooks.
//   - MockStorage and NewMock are not here: use memory.New as the Store, or ToStorage of
//     memory.NewPolled.
package s3lect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/peer"
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

var (
	errStarted = errors.New("s3lect: the elector was started already")
	errStopped = errors.New("s3lect: the elector has stopped")
	errBusy    = errors.New("s3lect: a hook has not returned; the lease runs out by itself")
)

// stopWithin bounds Stop. It is longer than hookWithin for a hook plus 2 s for the release.
const stopWithin = 10 * time.Second

// S3Elector is S3lect's elector over Tenure. It must be made by NewS3Elector, and can be started
// once. Its methods may be called from many goroutines.
type S3Elector struct {
	log       *slog.Logger
	configure func(*tenure.Config)
	election  *tenure.Election
	peers     *peer.Store // nil where the store itself pushes
	roots     roots

	updating sync.Mutex // one at a time

	mu      sync.Mutex
	cfg     ElectorConfig
	cancel  context.CancelFunc // nil before Start
	done    chan struct{}      // closed when the loop has ended
	term    *tenure.Term       // nil while not elected
	ready   bool               // the acquire hook has succeeded
	elected time.Time
	changed chan struct{} // closed and replaced when one of these changes
}

var _ Elector = (*S3Elector)(nil)

// NewS3Elector returns an elector, which the caller must start. It sends no request. It returns an
// error that names missing and wrong options.
func NewS3Elector(opts S3ElectorOptions) (*S3Elector, error) {
	if opts.Config == nil {
		return nil, errors.New("s3lect: Config is nil")
	}
	e := &S3Elector{
		log: opts.Logger, configure: opts.Configure, cfg: *opts.Config,
		done: make(chan struct{}), changed: make(chan struct{}),
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	if err := e.cfg.Validate(); err != nil {
		return nil, fmt.Errorf("s3lect: %w", err)
	}
	if err := e.roots.set(e.cfg.PeerCACert); err != nil {
		return nil, err
	}
	if err := e.open(opts); err != nil {
		return nil, err
	}
	return e, nil
}

// settings returns the settings of the election.
func (e *S3Elector) settings(c *ElectorConfig) tenure.Config {
	t := c.tenure()
	t.Tuning.NoWatch = e.peers != nil && !c.PeerMode
	t.Logger = e.log
	if e.configure != nil {
		e.configure(&t)
	}
	return t
}

// Start campaigns in the background until ctx ends or Stop is called; either gives up leadership.
// It returns an error if the elector was started before.
func (e *S3Elector) Start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		return errStarted
	}
	ctx, e.cancel = context.WithCancel(ctx)
	go e.loop(ctx)
	return nil
}

// loop starts the election again when it ends with an error: it does so if it was never allowed to
// read.
func (e *S3Elector) loop(ctx context.Context) {
	defer e.ended()
	for {
		err := e.election.Run(ctx, e.lead)
		if ctx.Err() != nil {
			return
		}
		e.log.Error("s3lect: cannot take part in the election; trying again", "lockfilePath", e.election.Name(), "error", err)
		select {
		case <-time.After(e.config().FrequentInterval):
		case <-ctx.Done():
			return
		}
	}
}

func (e *S3Elector) ended() {
	if e.peers != nil {
		_ = e.peers.Close()
	}
	e.set(func() {
		e.cancel() // frees the resources of a context that ended by itself
		close(e.done)
	})
}

// set changes the elector under its lock, and wakes the waiters.
func (e *S3Elector) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *S3Elector) config() ElectorConfig {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cfg
}

// Stop gives up leadership, if this process leads, and returns when OnLoseLeadership has returned
// and the lockfile shows the release. It does nothing if the elector was not started. It returns an
// error if that takes more than 10 s. From within a hook it always does, since it waits for that
// hook.
func (e *S3Elector) Stop() error {
	e.mu.Lock()
	cancel := e.cancel
	e.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	select {
	case <-e.done:
		return nil
	case <-late.C:
		return errBusy
	}
}

// hookWithin is how long the context of OnLoseLeadership lasts.
const hookWithin = 5 * time.Second

// lead is a leader's work: it calls the hooks. Its context ends when leadership should end, or has
// ended.
func (e *S3Elector) lead(ctx context.Context, t *tenure.Term) error {
	e.set(func() { e.term, e.elected = t, time.Now() })
	if hook := e.config().OnAcquireLeadership; hook != nil {
		if err := hook(ctx); err != nil {
			e.log.Error("s3lect: OnAcquireLeadership failed; resigning", "error", err)
			e.finish(ctx, true)
			return fmt.Errorf("%w: %w", tenure.ErrDecline, err)
		}
	}
	e.set(func() { e.ready = true })
	<-ctx.Done()
	e.finish(ctx, false)
	return nil
}

// finish returns when the hook has returned: only then may the lease be released.
func (e *S3Elector) finish(ctx context.Context, failed bool) {
	var hook func(context.Context) error
	e.set(func() {
		e.term, e.ready = nil, false
		if failed {
			e.elected = time.Time{}
		}
		hook = e.cfg.OnLoseLeadership
	})
	if hook == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookWithin)
	defer cancel()
	if err := hook(ctx); err != nil {
		e.log.Warn("s3lect: OnLoseLeadership failed", "error", err)
	}
}

// IsLeader reports whether this process leads: it was elected, its lease is valid at this moment by
// its own clock, and it is not about to give up. It is true already while OnAcquireLeadership runs.
func (e *S3Elector) IsLeader() bool {
	e.mu.Lock()
	t := e.term
	e.mu.Unlock()
	return leads(t)
}

func leads(t *tenure.Term) bool {
	return t != nil && t.Context().Err() == nil && t.Err() == nil
}

// LeaderID returns the ServerID of the leader as far as this process knows; empty while there is no
// leader.
func (e *S3Elector) LeaderID() string { return e.election.Status().Leader.ID }

// GetLeadershipStatus returns a snapshot. It is never nil.
func (e *S3Elector) GetLeadershipStatus() *LeadershipStatus {
	s := e.election.Status()
	e.mu.Lock()
	status := &LeadershipStatus{
		ServerID: e.cfg.ServerID, LockfilePath: e.cfg.LockfilePath, LastElectionTime: e.elected,
		LeaderID: s.Leader.ID, LeaderAddr: s.Leader.Address, ConsecutiveFails: s.Failures,
	}
	t := e.term
	e.mu.Unlock()
	status.IsLeader = leads(t)
	if s.Leader.Exists() {
		status.LeaderLastSeen = s.LastContact
	}
	return status
}

// WaitForLeadership returns nil once this process leads and OnAcquireLeadership has succeeded. It
// returns ctx's error if ctx ends first, and another error if the elector has stopped.
func (e *S3Elector) WaitForLeadership(ctx context.Context) error {
	for {
		e.mu.Lock()
		t, ready, changed := e.term, e.ready, e.changed
		e.mu.Unlock()
		if ready && leads(t) {
			return nil
		}
		select {
		case <-e.done:
			return errStopped
		default:
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lookEvery is how often WaitForNextElection checks the status: Election.Watch yields no renewals.
const lookEvery = 100 * time.Millisecond

// WaitForNextElection returns the status once this process has seen the lockfile's state at a time
// after since; with the zero time, at any time. It checks this every 100 ms. It returns ctx's error
// if ctx ends first, and another error if the elector has stopped.
func (e *S3Elector) WaitForNextElection(ctx context.Context, since time.Time) (*LeadershipStatus, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if s := e.election.Status(); s.Known && s.LastContact.After(since) {
			return e.GetLeadershipStatus(), nil
		}
		select {
		case <-tick.C:
		case <-e.done:
			return nil, errStopped
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
