package s3lect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// maxTimeout is the longest possible lease: an S3lect lockfile is read as a record with a lease of
// LeaderTimeout.
const maxTimeout = time.Hour

// LegacyConfig describes the S3lect processes that share a lockfile. It must be the same in all
// candidates.
type LegacyConfig struct {
	// LeaderTimeout is the setting of the S3lect processes: how long a leader may be silent before
	// they take over. From 1 ms to 1 h; zero is S3lect's default, 15 s.
	LeaderTimeout time.Duration
	// MaxSkew is how far the time of day on the machine of any candidate may differ from that of
	// any S3lect process. It must be shorter than LeaderTimeout: with a larger difference S3lect
	// processes take over from live leaders. Zero is a third of LeaderTimeout. After a crash S3lect
	// processes wait longer, by up to twice this time.
	MaxSkew time.Duration
}

func (c LegacyConfig) withDefaults() LegacyConfig {
	c.LeaderTimeout = cmp.Or(c.LeaderTimeout, defaultTimeout)
	c.MaxSkew = cmp.Or(c.MaxSkew, c.LeaderTimeout/3)
	return c
}

func (c LegacyConfig) validate() error {
	var problems []error
	if c.LeaderTimeout < time.Millisecond || c.LeaderTimeout > maxTimeout {
		problems = append(problems, fmt.Errorf("LeaderTimeout is %v; it must be from 1ms to %v", c.LeaderTimeout, maxTimeout))
	}
	if c.MaxSkew < 0 || c.MaxSkew >= c.LeaderTimeout {
		problems = append(problems, fmt.Errorf("MaxSkew is %v; it must be at least 0 and below LeaderTimeout, which is %v",
			c.MaxSkew, c.LeaderTimeout))
	}
	return errors.Join(problems...)
}

// Legacy returns the store for candidates that share their election with S3lect processes. Use it
// only during a rolling migration. It translates values and does nothing else:
//
//   - A record of Tenure is written so that S3lect processes see a leader with another ID than
//     theirs, and wait until its lease is over: its leaderID is "ID#incarnation", and its
//     lastUpdated lies in the future, by MaxSkew plus the time by which the lease exceeds
//     LeaderTimeout. A vacant record has the leader "vacant#nonce". A released record has the zero
//     time, S3lect's sign of resignation. All other bytes stay the same, and a read undoes the
//     translation.
//   - An S3lect lockfile is read as a record of term 0. Its incarnation is "s3lect:" and a hash of
//     its leaderID, and its lease is LeaderTimeout. If its time is zero, the record is released.
//   - All other bytes stay unchanged.
//
// The result has the abilities of the store, and its Inspect adds one finding. Legacy
// returns an error if the store is nil, or one that names all problems of the config.
//
// S3lect writes no term, and drops fields that it does not know. So tokens keep growing after
// S3lect has led only over a store with a Floor, such as package s3object; see FromStorage for
// stores without. Do not delete the lockfile while both kinds of process run: without a lockfile
// S3lect takes over at once, even if another process leads.
//
// An S3lect process cannot be asked to hand over: HandOver returns an error while one leads. The
// translation lengthens a record by up to 160 bytes. If it is longer than driver.MaxValue bytes
// then, the write fails and nothing is sent.
func Legacy(store driver.Store, cfg LegacyConfig) (driver.Store, error) {
	if store == nil {
		return nil, errors.New("s3lect: the store is nil")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("s3lect: LegacyConfig: %w", err)
	}
	return legacyAt(store, cfg, time.Now), nil
}

func legacyAt(store driver.Store, cfg LegacyConfig, now func() time.Time) driver.Store {
	return &legacy{inner: store, format: format{timeout: cfg.LeaderTimeout, skew: cfg.MaxSkew}, now: now}
}

type legacy struct {
	inner  driver.Store
	format format
	now    func() time.Time
}

func (l *legacy) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := l.inner.Read(ctx, key)
	if err != nil {
		return driver.Entry{}, err
	}
	return l.translate(e), nil
}

func (l *legacy) translate(e driver.Entry) driver.Entry {
	if !e.Absent() {
		e.Value = l.format.decode(e.Value, e.Version)
	}
	return e
}

func (l *legacy) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	own, err := l.format.encode(bytes.Clone(value), l.now())
	if err != nil {
		return "", fmt.Errorf("s3lect: %s: %w", key, err)
	}
	return l.inner.CompareAndSwap(ctx, key, prev, own)
}

// Abilities returns those of the store. Pushes are translated, and may not reach every member:
// S3lect processes do not receive them. Inspect adds a finding.
func (l *legacy) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(l.inner)
	a.Inspector = legacyInspector{driver.AbilitiesOf(l.inner), l.format.skew}
	if a.Watcher != nil {
		w := legacyWatcher{l, a.Watcher}
		a.Watcher, a.Peers = w, legacyPeers{w, a.Peers}
	}
	return a
}

type legacyWatcher struct {
	*legacy
	inner driver.Watcher
}

func (w legacyWatcher) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return w.inner.Watch(ctx, key, func(e driver.Entry) { see(w.translate(e)) })
}

// legacyPeers marks pushes that S3lect processes do not receive.
type legacyPeers struct {
	legacyWatcher
	peers driver.Peers // nil: the store itself pushes
}

// Incarnation returns a name of the store's peers, or none.
func (p legacyPeers) Incarnation(left func(term uint64) time.Duration) string {
	if p.peers == nil {
		return ""
	}
	return p.peers.Incarnation(left)
}

type legacyInspector struct {
	driver.Inspector
	skew time.Duration
}

// Inspect adds a finding that legacy mode is on, since it should end.
func (i legacyInspector) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	findings, err := i.Inspector.Inspect(ctx, lease)
	if err != nil {
		return nil, err
	}
	return append(findings, driver.Finding{
		Severity: driver.Warning,
		Setting:  "legacy",
		Problem:  "while an S3lect process takes part, there can be two leaders if clocks are further apart than " + i.skew.String(),
		Remedy:   "leave out s3lect.Legacy once the last S3lect process is gone",
	}), nil
}
