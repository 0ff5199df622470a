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

// run follows one term for one key, until it is cancelled or the leader releases. It is a
// goroutine.
type run struct {
	hub    *hub
	key    string
	target target
	cancel context.CancelFunc
}

// follow connects again and again. In between the election receives nothing and reads the store.
func (r *run) follow(ctx context.Context) {
	for tries := 0; ; tries++ {
		began := time.Now()
		err := r.listen(ctx)
		if ctx.Err() != nil || err == nil {
			return
		}
		r.report(err)
		if time.Since(began) > r.hub.cfg.Retry {
			tries = 0
		}
		if !sleep(ctx, r.delay(tries)) {
			return
		}
	}
}

// delay is the wait after a failure, tries having failed in a row before it.
func (r *run) delay(tries int) time.Duration {
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

// report reports a change: another fault, or none any more.
func (r *run) report(err error) {
	if err != nil {
		err = fmt.Errorf("peer: election %q: leader at %q: %w", r.key, r.target.address, err)
	}
	if r.hub.changed(r, err) {
		r.hub.cfg.OnError(r.key, err)
	}
}

// listen holds one connection. It returns nil after a release, and otherwise why the connection
// ended. A peer has the timeout to prove itself; from then on it may be silent for as long as its
// lease. An end that is not a release causes one read by each watching election: the leader may be
// gone, or hide something.
func (r *run) listen(follow context.Context) (ended error) {
	ctx, cancel := context.WithCancelCause(follow)
	defer cancel(nil)
	quiet := r.hub.cfg.Timeout
	dog := time.AfterFunc(quiet, func() { cancel(errSilent) })
	defer dog.Stop()
	challenge := newChallenge()
	resp, err := r.hub.dial.ask(ctx, r.target.address, r.key, challenge)
	if err != nil {
		return because(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := streams(resp); err != nil {
		return err
	}
	s := statement{challenge: challenge, key: r.key}
	proved := false
	defer func() {
		if ended != nil && proved && follow.Err() == nil {
			// it says nothing of the record, which is read for that
			r.hub.notifyFrom(r, r.key, driver.Entry{})
		}
	}()
	d := newDecoder(resp.Body, func() {
		if proved {
			dog.Reset(quiet)
		}
	})
	for {
		e, err := d.next()
		if err != nil {
			return because(ctx, err)
		}
		rec, err := r.verify(&s, e)
		if err != nil {
			return err
		}
		proved, quiet = true, rec.Lease
		dog.Reset(quiet)
		r.report(nil)
		// Floor: see page.entry.
		r.hub.notifyFrom(r, r.key, driver.Entry{Value: e.value, Version: e.version, Floor: rec.Term})
		if rec.Released {
			return nil
		}
	}
}

// because returns the cause of the context instead of its effect on the connection.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the stream has ended")
	}
	return err
}

// verify checks an event: signed for us and now, by the leader that the store names, about its own
// record.
func (r *run) verify(s *statement, e event) (record.Record, error) {
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

func streams(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %q", resp.Status)
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != eventStream {
		return errNotStream
	}
	return nil
}
