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
	// The pause between attempts to connect grows from the first to the last.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second

	// Anybody can notify. Of one key, the first few notifications in a period are taken at once,
	// and of the others the last when it ends.
	few    = 20
	period = time.Second

	// The first attempt to connect is short, so that elections soon know of a loss. A server that
	// is overloaded needs more time.
	firstAttempt, laterAttempt = 2 * time.Second, 2 * answerWithin
)

// look is a push that makes an election read.
var look = driver.Entry{Unverified: true}

// feed receives notifications, and opens a line again when it is lost. It is one goroutine.
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

func newFeed(h *hub) *feed { return &feed{hub: h, taken: map[string]count{}} }

func (f *feed) run(ctx context.Context) {
	for f.open(ctx) {
		f.listen(ctx)
		f.line.close()
	}
}

// listen takes notifications until the line is lost or the context ends.
func (f *feed) listen(ctx context.Context) {
	last := time.Now() // the last ping
	ping := last.Add(pingAfter)
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
			ping = earlier(time.Now().Add(pingAfter), last.Add(pingEvery))
			f.take(payload)
		}
		if !time.Now().Before(ping) {
			if f.hub.listener.ping(ctx, f.line) != nil {
				return
			}
			last = time.Now()
			ping = last.Add(pingAfter)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
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

// open opens a line. If the first attempt fails, the elections poll until there is a line. It
// returns false when the context has ended.
func (f *feed) open(ctx context.Context) bool {
	within := firstAttempt
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		attempt, cancel := context.WithTimeout(ctx, within)
		n, err := f.hub.listener.open(attempt)
		cancel()
		if err == nil {
			f.line = n
			f.hub.pushes(ctx, nil)
			return true
		}
		f.hub.pushes(ctx, err)
		within = laterAttempt
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return false
		}
	}
}
