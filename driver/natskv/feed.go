package natskv

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
)

const (
	// reopenTimeout bounds one attempt to replace a lost link.
	reopenTimeout = 2 * time.Second
	// The pause between such attempts grows from the first to the last. A connection that comes
	// back ends it early.
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// source is the source of a whole bucket's messages.
type source interface {
	// open begins to call deliver for the messages of all keys, in order: those after the given
	// floor as far as they still exist. After 0, or where the bucket was recreated, those that are
	// written from now on.
	open(ctx context.Context, after uint64, deliver func(key string, e driver.Entry)) (*link, error)
	// reconnects signals that the connection was replaced, which loses a link silently. The channel
	// may be nil.
	reconnects() (again <-chan nats.Status, stop func())
}

// link is one stretch of messages. When it is lost, no more come, or some were missed.
type link struct {
	after uint64 // the floor after which it begins; 0 if not known
	life  life   // the life of the bucket whose messages it brings; 0 if not known
	floor uint64 // of an absent key when the link begins; 0 if not known
	// it does not resume after the given floor: the bucket was recreated or put back
	recreated bool
	lost      <-chan struct{} // closed when the link is lost
	stop      func()          // ends the link and does not block; to be called once, lost or not
}

func (l *link) end() { l.stop() }

// feed keeps the messages coming: it replaces each lost link by one that resumes after it. It is
// one goroutine.
type feed struct {
	from      source
	calls     *abandon.Calls
	deliver   func(key string, e driver.Entry)
	pushes    func(ctx context.Context, lost error) // notes whether messages come
	link      *link
	recreated func(*link) // called when the past of the bucket has changed
	life      life        // the life of the links so far; 0 if not known
	// the floor of the last message delivered or known to be older; 0 if there is none
	last atomic.Uint64
}

// openFeed sets up the first link within the context, so that its errors are the caller's.
func openFeed(ctx context.Context, h *hub) (*feed, error) {
	f := &feed{from: h.from, calls: h.calls, deliver: h.deliver, pushes: h.pushes, recreated: h.recreated}
	if err := f.open(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *feed) open(ctx context.Context) error {
	before := f.last.Load()
	l, err := abandon.Run(ctx, f.calls, func() (*link, error) { return f.from.open(ctx, before, f.pass) }, (*link).end)
	if err != nil {
		return err
	}
	f.link = l
	if l.after > 0 {
		f.last.CompareAndSwap(before, l.after) // unless a message has come already
	}
	if l.recreated || f.life != 0 && l.life != 0 && l.life != f.life {
		f.recreated(l)
	}
	f.life = l.life
	return nil
}

// pass keeps the last floor, not the highest one: a stream that was put back to an older state
// begins again from there.
func (f *feed) pass(key string, e driver.Entry) {
	f.last.Store(e.Floor)
	f.deliver(key, e)
}

// run ends with the context, and stops the link then.
func (f *feed) run(ctx context.Context) {
	again, stop := f.from.reconnects()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			f.link.stop()
			return
		case <-f.link.lost:
		case <-again:
		}
		f.link.stop()
		if !f.reopen(ctx, again) {
			return
		}
	}
}

// reopen tries until it has a new link. After the first failure the elections poll until it has
// one, and then read. It returns false if the context ended first; there is no link then.
func (f *feed) reopen(ctx context.Context, again <-chan nats.Status) bool {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := f.attempt(ctx)
		if err == nil {
			f.pushes(ctx, nil)
			return true
		}
		f.pushes(ctx, fmt.Errorf("no changes of the bucket are pushed: %w", err))
		if !sleep(ctx, pause, again) {
			return false
		}
	}
}

func (f *feed) attempt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reopenTimeout)
	defer cancel()
	return f.open(ctx)
}

// sleep waits for d or for a signal on early. It returns false as soon as the context has ended.
func sleep(ctx context.Context, d time.Duration, early <-chan nats.Status) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-early:
	case <-timer.C:
	}
	return ctx.Err() == nil
}
