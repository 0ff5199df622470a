package natskv

import (
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

const (
	// suspicious is how long a request waits before the connection is doubted. Most take less than a hundredth of it.
	suspicious = 300 * time.Millisecond
	// pongWithin is how long a doubted server may take for a sign of life, on a short way.
	pongWithin = 500 * time.Millisecond
	// farther is how many times the last such way it may take otherwise, and any answer.
	farther = 4
	// The pause between two forced reconnects is an eighth of how long the trouble has lasted, within these bounds.
	leastPause = time.Second
	mostPause  = 30 * time.Second
)

// errSilent is the reason of a forced reconnect.
var errSilent = errors.New("the server did not answer, so the connection was made anew")

// keeper takes care of a connection of our own. That of a borrowed one is nil, and does nothing.
//
// A forced reconnect answers no request. Those under way end with errors that leave their outcome open, as with any loss
// of the connection, and what was sent may still be applied by a server that wakes up later.
type keeper struct {
	nc    *nats.Conn
	tasks sync.WaitGroup // at most one: a sign of life that is waited for

	mu      sync.Mutex
	waiting map[string]map[*lookout]struct{} // the requests that may yet be refused, by the subjects of their publishes
	muted   error                            // the server refused to let us hear answers
	login   error                            // the server refuses the credentials
	reads   stretch
	writes  stretch
	way     time.Duration // how long a sign of life took
	asking  bool          // for a sign of life
	signs   uint64        // what the server said of itself
	said    pulse         // when that was
	moved   time.Time     // when the connection was last made anew by force
	forced  bool          // the loss of the connection that is told next is our own doing
	closed  bool
}

// newKeeper puts itself between the connection and whoever else is told of it.
func newKeeper(o *nats.Options) *keeper {
	k := &keeper{waiting: map[string]map[*lookout]struct{}{}}
	onError, onLoss, onReturn := o.AsyncErrorCB, o.DisconnectedErrCB, o.ReconnectedCB
	prefix := inboxPrefix(o.InboxPrefix)
	o.AsyncErrorCB = func(nc *nats.Conn, sub *nats.Subscription, err error) {
		k.complaint(err, prefix)
		if onError != nil {
			onError(nc, sub, err)
		}
	}
	o.DisconnectedErrCB = func(nc *nats.Conn, err error) {
		err = k.lost(err)
		if onLoss != nil {
			onLoss(nc, err)
		}
	}
	o.ReconnectedCB = func(nc *nats.Conn) {
		k.returned()
		if onReturn != nil {
			onReturn(nc)
		}
	}
	return k
}

// connect also finds out how far away the server is.
func (k *keeper) connect(o nats.Options) error {
	nc, err := o.Connect()
	if err != nil {
		return err
	}
	k.nc = nc
	start := time.Now()
	if nc.FlushTimeout(nc.Opts.Timeout) == nil {
		k.way = time.Since(start)
	}
	return nil
}

func (k *keeper) close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.nc.Close()
	k.tasks.Wait()
}

// attend has a request told of refusals, each of them, until leave.
func (k *keeper) attend(l *lookout) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, subject := range l.subjects {
		if k.waiting[subject] == nil {
			k.waiting[subject] = map[*lookout]struct{}{}
		}
		k.waiting[subject][l] = struct{}{}
	}
}

func (k *keeper) leave(l *lookout) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, subject := range l.subjects {
		delete(k.waiting[subject], l)
		if len(k.waiting[subject]) == 0 {
			delete(k.waiting, subject)
		}
	}
}

// complaint is what the server says without having been asked.
func (k *keeper) complaint(err error, prefix string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case isLogin(err):
		k.login = err
	case isUnheard(err, prefix):
		k.muted = err
	}
	k.signs++
	k.said.beat()
	for l := range k.waiting[refusedSubject(err)] {
		l.hear(err)
	}
}

func (k *keeper) returned() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.login, k.muted = nil, nil
}

// lost gives the loss of a connection a reason if it was our own doing.
func (k *keeper) lost(err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && k.forced {
		err = errSilent
	}
	k.forced = false
	return err
}

// isMuted returns the server's refusal to let us hear answers, nil if there was none.
func (k *keeper) isMuted() error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.muted
}

// refused adds to the error of a request that was not sent that the server refuses the credentials.
func (k *keeper) refused(err error) error {
	if k == nil || err == nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.login != nil {
		return unwelcome(k.login)
	}
	return err
}

// answered is told of each request that came back. A server that says that it cannot reach the others is no better than one
// that says nothing. One that was cut off goes on for a while to show what it knows, and for ever to describe it, so only a
// record that was read ends a stretch of failing reads, and only a write that was applied ends one of failing writes.
func (k *keeper) answered(m *nats.Msg, what task) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case inVain(m.Data, what), what == writing && refused(m.Data) && k.writes.live():
		k.failed(time.Now(), what, true)
	case what == writing && !refused(m.Data):
		k.reads, k.writes = stretch{}, stretch{}
	case what == reading:
		k.reads = stretch{}
	}
}

// unanswered is told of each request that ended without an answer, with its beginning. How long it waited counts, not why it
// ended: a caller may have had little time, or have lost interest.
func (k *keeper) unanswered(began time.Time, what task, err error) {
	if k == nil || errors.Is(err, driver.ErrDenied) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		k.failed(began, what, true)
	case time.Since(began) >= suspicious:
		k.failed(began, what, false)
	}
}

// failed moves on if nothing has succeeded for long, though the server lives. It is called under the lock.
func (k *keeper) failed(began time.Time, what task, told bool) {
	if what == writing {
		k.writes.add(began, told)
	} else {
		k.reads.add(began, told)
	}
	if outlasts(k.moved, k.reads, k.writes) && !k.asking && k.mayMove() {
		k.asking = true
		k.tasks.Go(k.move)
	}
}

// doubt asks the server for a sign of life, and has the connection made anew if there is none.
func (k *keeper) doubt() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asking || !k.mayMove() {
		return
	}
	k.asking = true
	k.tasks.Go(k.ask)
}

// mayMove is called under the lock.
func (k *keeper) mayMove() bool { return !k.closed && time.Since(k.moved) >= k.pause() }

func (k *keeper) pause() time.Duration {
	return min(max(leastPause, k.reads.age()/8, k.writes.age()/8), mostPause)
}

// ask goes by an answer to a ping, which the connected server gives by itself, whatever became of the stream's leader.
func (k *keeper) ask() {
	before, start, patience := k.heard(), time.Now(), k.patience()
	err := k.nc.FlushTimeout(patience)
	took := time.Since(start)
	if errors.Is(err, nats.ErrTimeout) && took < 2*patience && k.heard() == before && k.nc.IsConnected() {
		k.move()
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asking = false
	if err == nil {
		k.way = took
	}
}

// sign is all that a connection has heard, by number. A server that sends anything lives, though its pong may have to wait
// behind a lot; and a process that was held up itself for as long again cannot tell.
type sign struct{ reconnects, messages, complaints uint64 }

func (k *keeper) heard() sign {
	stats := k.nc.Stats()
	k.mu.Lock()
	defer k.mu.Unlock()
	return sign{stats.Reconnects, stats.InMsgs, k.signs}
}

// quiet is for how long a request that began then, or any like it, was neither answered nor refused.
func (k *keeper) quiet(answers *pulse, from time.Time) time.Duration {
	d := answers.quiet(from)
	if k != nil {
		d = min(d, k.said.quiet(from))
	}
	return d
}

// answerWithin is how long a request may wait. Of a borrowed connection it is not known how far away the server is.
func (k *keeper) answerWithin() time.Duration {
	if k == nil {
		return 2 * time.Second
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(time.Second, farther*k.way)
}

// astray moves on from servers of another cluster than ours.
func (k *keeper) astray() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.asking && k.mayMove() {
		k.asking = true
		k.tasks.Go(k.move)
	}
}

func (k *keeper) patience() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(pongWithin, farther*k.way)
}

// move makes the connection anew, with the next server if several are known. The library may hold its lock for as long as a
// write may take, so nobody waits for this.
func (k *keeper) move() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asking = false
	if k.closed {
		return
	}
	k.moved, k.forced = time.Now(), true
	k.tasks.Go(func() {
		_ = k.nc.ForceReconnect() // it fails only if the connection is closed
	})
}
