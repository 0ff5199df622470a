package s3lect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// maxTimeout is the longest lease there is, which a lockfile of S3lect's is given.
const maxTimeout = time.Hour

// LegacyConfig describes the S3lect processes that share a lockfile. All candidates must be given
// the same.
type LegacyConfig struct {
	// LeaderTimeout is that of the S3lect processes: how long they let a leader be silent. From 1
	// ms to 1 h; zero is S3lect's default, 15 s.
	LeaderTimeout time.Duration
	// MaxSkew is how far the time of day on the machine of any candidate may differ from that of
	// any S3lect process. It must be shorter than LeaderTimeout, since with more S3lect's processes
	// steal from each other. Zero is a third of LeaderTimeout. It lengthens the wait of S3lect's
	// processes after a crash.
	MaxSkew time.Duration
}

func (c LegacyConfig) withDefaults() LegacyConfig {
	if c.LeaderTimeout == 0 {
		c.LeaderTimeout = 15 * time.Second
	}
	if c.MaxSkew == 0 {
		c.MaxSkew = c.LeaderTimeout / 3
	}
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

// Legacy returns the store for candidates that share their election with S3lect processes, during a
// rolling migration and no longer. It translates bytes and does nothing else:
//
//   - A record of Tenure is written so that S3lect's processes see a leader with another ID than
//     theirs, and wait it out: its leaderID is "ID#incarnation", and its lastUpdated lies in the
//     future by MaxSkew and by the time that the lease exceeds LeaderTimeout. A vacant record has a
//     leader of its own, "vacant#nonce". A released one has the zero time, S3lect's sign of
//     resignation. Every other byte stays, and reading undoes it.
//   - A lockfile of S3lect is read as a record of term 0. Its leader is "s3lect:" and a hash of its
//     leaderID, and its lease is LeaderTimeout. If its time is zero it is a released one.
//   - All other bytes stay unchanged.
//
// It has the abilities of the store, and adds a finding to those of Inspect. It returns an error
// that names all problems of the config, or that the store is nil.
//
// S3lect writes no term, and keeps no field where one could be. So tokens grow across its reigns
// only over a store with a Floor, such as one of package s3object; see FromStorage for stores
// without. The lockfile must not be deleted while both kinds of process run: S3lect takes over from
// an absent one at once, even if another process leads.
//
// A leader of S3lect cannot be asked to hand over: HandOver returns an error while one leads. The
// translation lengthens a record by up to 160 bytes, which the limit of driver.MaxValue bytes must
// leave room for; a longer one is not sent.
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
	return assemble(&legacy{inner: store, format: format{timeout: cfg.LeaderTimeout, skew: cfg.MaxSkew}, now: now})
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
