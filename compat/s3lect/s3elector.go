package s3lect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/peer"
)

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
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancel() // frees the resources of a context that ended by itself
	close(e.done)
	e.broadcast()
}

// broadcast wakes the waiters. It is called under the lock.
func (e *S3Elector) broadcast() {
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
