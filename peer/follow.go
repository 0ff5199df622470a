package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

var (
	errSilent    = errors.New("the peer is silent")
	errStranger  = errors.New("the peer shows a record that is not its own")
	errNotStream = errors.New("the peer answers without a stream")
)

// follower follows one term for one key, in its own goroutine, until it is cancelled or the leader
// releases.
type follower struct {
	hub    *hub
	key    string
	target target
	cancel context.CancelFunc
}

// follow connects, and reconnects after each failure. Without a connection the election reads the
// store.
func (r *follower) follow(ctx context.Context) {
	for tries := 0; ; tries++ {
		began := time.Now()
		err := r.followOnce(ctx)
		if ctx.Err() != nil || err == nil {
			return
		}
		r.report(err)
		if time.Since(began) > r.hub.cfg.Retry {
			tries = 0
		}
		if !sleep(ctx, r.retryDelay(tries)) {
			return
		}
	}
}

// retryDelay returns the wait after a failure, if tries others failed in a row before it.
func (r *follower) retryDelay(tries int) time.Duration {
	sooner := [...]time.Duration{0, 100 * time.Millisecond, time.Second}
	if tries < len(sooner) {
		return min(sooner[tries], r.hub.cfg.Retry)
	}
	return r.hub.cfg.Retry
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// report reports an error that differs from the last one, or that there is none any more.
func (r *follower) report(err error) {
	if err != nil {
		err = fmt.Errorf("peer: election %q: leader at %q: %w", r.key, r.target.address, err)
	}
	if r.hub.isNewReport(r, err) {
		r.hub.cfg.OnError(r.key, err)
	}
}

// followOnce follows over one connection. It returns nil after a release, and otherwise why the
// connection ended. The first proof must come within the timeout. After that the peer may be silent
// for one lease. If a connection ends without a release, each watching election reads once, because
// the leader may have ended or hide a change.
func (r *follower) followOnce(follow context.Context) (ended error) {
	ctx, cancel := context.WithCancelCause(follow)
	defer cancel(nil)
	silenceLimit := r.hub.cfg.Timeout
	watchdog := time.AfterFunc(silenceLimit, func() { cancel(errSilent) })
	defer watchdog.Stop()
	challenge := newChallenge()
	resp, err := r.hub.dial.request(ctx, r.target.address, r.key, challenge)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := checkStream(resp); err != nil {
		return err
	}
	s := statement{challenge: challenge, key: r.key}
	proved := false
	defer func() {
		if ended != nil && follow.Err() == nil {
			if proved {
				r.hub.notifyFrom(r, r.key, driver.Entry{}) // makes the elections read
			}
			r.hub.notifyFrom(r, r.key, driver.Entry{Lost: ended})
		}
	}()
	d := newDecoder(resp.Body, func() {
		if proved {
			watchdog.Reset(silenceLimit)
		}
	})
	for {
		e, err := d.next()
		if err != nil {
			return causeOf(ctx, err)
		}
		rec, err := r.verify(&s, e)
		if err != nil {
			return err
		}
		proved, silenceLimit = true, rec.Lease
		watchdog.Reset(silenceLimit)
		r.report(nil)
		// Floor: see leaderWrite.entry.
		r.hub.notifyFrom(r, r.key, driver.Entry{Value: e.value, Version: e.version, Floor: rec.Term})
		if rec.Released {
			return nil
		}
	}
}

// causeOf returns the cause of the context if it has ended, instead of the error of the connection.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the stream has ended")
	}
	return err
}

// verify checks that the event was signed for this request and position, by the leader that the
// store names, and holds that leader's own record.
func (r *follower) verify(s *statement, e event) (record.Record, error) {
	s.place++
	s.version, s.value = e.version, e.value
	if err := s.check(r.target.incarnation, e.proof); err != nil {
		return record.Record{}, err
	}
	rec, err := record.Decode(e.value)
	if err != nil {
		return record.Record{}, err
	}
	if rec.LeaderID == "" || rec.Incarnation != r.target.incarnation {
		return record.Record{}, errStranger
	}
	return rec, nil
}

func checkStream(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %q", resp.Status)
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != eventStream {
		return errNotStream
	}
	return nil
}
