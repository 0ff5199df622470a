package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
	"github.com/tenure-go/tenure/internal/loglimit"
	"github.com/tenure-go/tenure/internal/record"
)

// hub passes changes from leaders to the watches of each key. It keeps one connection, with one
// goroutine, for each key that is watched and has a leader to dial.
type hub struct {
	cfg  Config
	dial *dialler

	mu      sync.Mutex
	closed  bool
	watches watches.Set
	subject map[string]*watchedKey // by key, while it has watches
	// heard has the targets of keys without a watch yet, because the first read may come before the
	// first watch.
	heard     map[string]target
	followers sync.WaitGroup
}

// maxHeard bounds the number of keys that were read and never watched.
const maxHeard = 4096

// target is the leader to follow; the zero target is none. Each term has a new follower, which ends
// with the leader's release. A late read that still shows the same term must not start another one.
type target struct {
	address, incarnation string
	term                 uint64
}

// watchedKey is one key with watches. Its fields are under the hub's lock.
type watchedKey struct {
	target  target
	run     *follower // the last follower; it may have ended
	trouble string    // the last report, for any leader
}

func (h *hub) watch(key string, see func(driver.Entry)) (stop func(), err error) {
	w := watches.New(key, see)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	h.watches.Put(w)
	if h.subject[key] == nil {
		s := &watchedKey{}
		h.subject[key] = s
		h.follow(key, s, h.heard[key])
		delete(h.heard, key)
	}
	return func() { h.unwatch(w) }, nil
}

// unwatch ends the connection with the last watch.
func (h *hub) unwatch(w *watches.Watch) {
	if !w.Stop() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches.Remove(w) {
		h.follow(w.Key(), h.subject[w.Key()], target{})
		delete(h.subject, w.Key())
	}
}

// setTarget sets the leader to follow from now on.
func (h *hub) setTarget(key string, t target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.subject[key]; s != nil {
		h.follow(key, s, t)
		return
	}
	delete(h.heard, key)
	if t == (target{}) || h.closed {
		return
	}
	if len(h.heard) >= maxHeard {
		for other := range h.heard {
			delete(h.heard, other)
			break
		}
	}
	h.heard[key] = t
}

// follow ends the follower of the last target and starts one for the next. It is called under the
// lock.
func (h *hub) follow(key string, s *watchedKey, t target) {
	if s.target == t || h.closed {
		return
	}
	s.target = t
	if s.run != nil {
		s.run.cancel()
		s.run = nil
	}
	if t == (target{}) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &follower{hub: h, key: key, target: t, cancel: cancel}
	s.run = r
	h.followers.Go(func() {
		defer cancel()
		r.follow(ctx)
	})
}

// isNewReport records the report of a follower, and returns whether it differs from the last one.
func (h *hub) isNewReport(r *follower, err error) bool {
	trouble := ""
	if err != nil {
		trouble = loglimit.Cause(err.Error(), r.key)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.subject[r.key]
	if s == nil || s.run != r || s.trouble == trouble {
		return false
	}
	s.trouble = trouble
	return true
}

// notify calls the watches of a key without the lock, so that they may use the store.
func (h *hub) notify(key string, e driver.Entry) { h.notifyFrom(nil, key, e) }

// notifyFrom is notify for a change that a follower received. It ignores a follower that was
// replaced.
func (h *hub) notifyFrom(r *follower, key string, e driver.Entry) {
	h.mu.Lock()
	var to []*watches.Watch
	if s := h.subject[key]; s != nil && (r == nil || s.run == r) {
		to = h.watches.Of(key)
	}
	h.mu.Unlock()
	watches.Push(to, e)
}

// close stops all watches and returns when all followers have ended.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.watches.StopAll()
	for _, s := range h.subject {
		if s.run != nil {
			s.run.cancel()
		}
	}
	clear(h.subject)
	clear(h.heard)
	h.mu.Unlock()
	h.followers.Wait()
	h.dial.close()
}

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
