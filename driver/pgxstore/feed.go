package pgxstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/driver/watches"
)

const (
	// Anybody can notify. Of one key, the first few notifications in a period are taken at once,
	// and of the others the last when it ends.
	few    = 20
	period = time.Second
)

// newHub returns a hub of the notifications that a connection hears.
func newHub(l *listener) *watches.Hub {
	return watches.NewHub(func(h *watches.Hub) watches.Follow {
		return (&feed{hub: h, listener: l, taken: map[string]count{}}).follow
	})
}

// feed receives notifications, from the first watch to the last.
type feed struct {
	hub      *watches.Hub
	listener *listener
	taken    map[string]count // of each key in this period
	ends     time.Time        // of this period
}

// count is the number of notifications of a key, and the last of those that wait.
type count struct {
	n    int
	last string
}

// follow is a watches.Follow. The notifications between two connections are missed.
func (f *feed) follow(ctx context.Context, opened func(missed bool)) error {
	n, err := f.listener.open(ctx)
	if err != nil {
		return fmt.Errorf("no notifications come: %w", err)
	}
	defer n.close()
	opened(true)
	return f.listen(ctx, n)
}

// listen takes notifications until the line is lost or the context ends.
func (f *feed) listen(ctx context.Context, n *line) error {
	last := time.Now() // the last ping
	ping := last.Add(pingAfter)
	for {
		until := ping
		if len(f.taken) > 0 && f.ends.Before(ping) {
			until = f.ends
		}
		payload, ok, err := n.next(ctx, until)
		if err != nil {
			return err
		}
		if now := time.Now(); len(f.taken) > 0 && !now.Before(f.ends) {
			f.endPeriod()
		}
		if ok {
			if ping = time.Now().Add(pingAfter); ping.After(last.Add(pingEvery)) {
				ping = last.Add(pingEvery)
			}
			f.take(payload)
		}
		if !time.Now().Before(ping) {
			if err := f.listener.ping(ctx, n); err != nil {
				return err
			}
			last = time.Now()
			ping = last.Add(pingAfter)
		}
	}
}

// take gives a notification to the watches of its key, or keeps it where there are too many.
func (f *feed) take(payload string) {
	key, _, _ := strings.Cut(payload, "\n")
	if !f.hub.Watched(key) {
		return
	}
	if len(f.taken) == 0 {
		f.ends = time.Now().Add(period)
	}
	c := f.taken[key]
	c.n++
	if c.n <= few {
		f.deliver(payload)
	} else {
		c.last = payload
	}
	f.taken[key] = c
}

// deliver pushes what a notification says.
func (f *feed) deliver(payload string) {
	key, e, err := sqlstore.ParseNotification(payload)
	if err != nil {
		e = watches.Read
	}
	f.hub.Deliver(key, e)
}

// endPeriod delivers the notifications that waited. The ones that were dropped before may have been
// the true ones, so it also makes the elections read.
func (f *feed) endPeriod() {
	for key, c := range f.taken {
		if c.last != "" {
			f.deliver(c.last)
			f.hub.Deliver(key, watches.Read)
		}
	}
	clear(f.taken)
}
