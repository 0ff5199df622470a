package pgxstore

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

const (
	// The pause between attempts to connect again grows from the first to the last.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second

	// Anybody can notify. Of one key, the first few notifications in a period are taken at once,
	// and of the others the last when it ends.
	few    = 20
	period = time.Second
)

// look is a push that makes an election read.
var look = driver.Entry{Unverified: true}

// feed receives notifications, and replaces each lost line. It is one goroutine.
type feed struct {
	hub   *hub
	line  *line
	taken map[string]count // of each key in this period
	ends  time.Time        // of this period
}

// count is the number of notifications of a key, and the last of those that wait.
type count struct {
	n    int
	last string
}

func newFeed(h *hub, n *line) *feed { return &feed{hub: h, line: n, taken: map[string]count{}} }

func (f *feed) run(ctx context.Context) {
	defer func() { f.line.close() }()
	for {
		f.listen(ctx)
		if !f.reopen(ctx) {
			return
		}
		f.lookAll()
	}
}

// listen takes notifications until the line is lost or the context ends.
func (f *feed) listen(ctx context.Context) {
	ping := time.Now().Add(pingEvery)
	for {
		until := ping
		if len(f.taken) > 0 && f.ends.Before(ping) {
			until = f.ends
		}
		payload, ok, err := f.line.next(ctx, until)
		if err != nil {
			return
		}
		if now := time.Now(); len(f.taken) > 0 && !now.Before(f.ends) {
			f.endPeriod()
		}
		if ok {
			f.take(payload)
		}
		if !time.Now().Before(ping) {
			if f.hub.listener.ping(ctx, f.line) != nil {
				return
			}
			ping = time.Now().Add(pingEvery)
		}
	}
}

// take gives a notification to the watches of its key, or keeps it where there are too many.
func (f *feed) take(payload string) {
	key, _, _ := strings.Cut(payload, "\n")
	if !f.hub.watched(key) {
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
		e = look
	}
	f.hub.deliver(key, e)
}

// endPeriod delivers the notifications that waited. The ones that were dropped before may have been
// the true ones, so it also makes the elections read.
func (f *feed) endPeriod() {
	for key, c := range f.taken {
		if c.last != "" {
			f.deliver(c.last)
			f.hub.deliver(key, look)
		}
	}
	clear(f.taken)
}

// lookAll makes all elections read: notifications may have been missed.
func (f *feed) lookAll() {
	for _, key := range f.hub.keys() {
		f.hub.deliver(key, look)
	}
}

// reopen replaces the line. It returns false when the context has ended.
func (f *feed) reopen(ctx context.Context) bool {
	f.line.close()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		attempt, cancel := context.WithTimeout(ctx, 2*answerWithin)
		n, err := f.hub.listener.open(attempt)
		cancel()
		if err == nil {
			f.line = n
			return true
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return false
		}
	}
}
