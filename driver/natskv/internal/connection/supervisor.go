package connection

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

const (
	// suspicious is how long a request waits before the connection is doubted. Most take less than
	// a hundredth of it.
	suspicious = 300 * time.Millisecond
	// pongWithin is how long a doubted server may take for a sign of life, if it is near.
	pongWithin = 500 * time.Millisecond
	// farther is the factor by which a far server may exceed the last round trip, for a sign of
	// life and for any answer.
	farther = 4
	// The pause between two forced reconnects is an eighth of the time that the outage has lasted,
	// within these bounds.
	leastPause = time.Second
	mostPause  = 30 * time.Second
)

// ErrSilent is the reason of a forced reconnect that the connection's handler gets.
var ErrSilent = errors.New("the server did not answer, so the connection was recreated")

// supervisor replaces a connection of the store's own when its server does not help: it gives no
// sign of life, or requests have failed for long although it is alive. The supervisor of a borrowed
// connection is nil and does nothing.
//
// A forced reconnect answers no request. Those under way end with errors that leave their outcome
// open, as with any loss of the connection. A server that wakes up later may still apply requests
// that were sent before.
type supervisor struct {
	nc    *nats.Conn
	tasks sync.WaitGroup // at most one asks for a sign of life or reconnects

	mu sync.Mutex
	// waiting are requests that may still be refused, by the subjects of their publishes.
	waiting    map[string]map[*requestMonitor]struct{}
	noInbox    error // the server's refusal of an inbox, without which no answer arrives
	login      error // the server's refusal of the credentials
	reads      outage
	writes     outage
	roundTrip  time.Duration // of the last sign of life
	busy       bool          // a task is under way
	complained lastAnswer    // when the server last sent an error unasked: then it was alive
	replaced   time.Time     // when the connection was last replaced by force
	forced     bool          // the next loss of the connection is caused by the supervisor
	closed     bool
}

// supervise gets the connection's reports before the handlers in the options do.
func supervise(o *nats.Options) *supervisor {
	s := &supervisor{waiting: map[string]map[*requestMonitor]struct{}{}}
	onError, onLoss, onReturn := o.AsyncErrorCB, o.DisconnectedErrCB, o.ReconnectedCB
	prefix := inboxPrefix(o.InboxPrefix)
	o.AsyncErrorCB = func(nc *nats.Conn, sub *nats.Subscription, err error) {
		s.complaint(err, prefix)
		if onError != nil {
			onError(nc, sub, err)
		}
	}
	o.DisconnectedErrCB = func(nc *nats.Conn, err error) {
		err = s.lost(err)
		if onLoss != nil {
			onLoss(nc, err)
		}
	}
	o.ReconnectedCB = func(nc *nats.Conn) {
		s.returned()
		if onReturn != nil {
			onReturn(nc)
		}
	}
	return s
}

// start measures the distance to the server.
func (s *supervisor) start(nc *nats.Conn) {
	s.nc = nc
	start := time.Now()
	if nc.FlushTimeout(nc.Opts.Timeout) == nil {
		s.roundTrip = time.Since(start)
	}
}

func (s *supervisor) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.nc.Close()
	s.tasks.Wait()
}

// register makes a request receive each refusal that may be its own, until unregister.
func (s *supervisor) register(r *requestMonitor) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, subject := range r.subjects {
		if s.waiting[subject] == nil {
			s.waiting[subject] = map[*requestMonitor]struct{}{}
		}
		s.waiting[subject][r] = struct{}{}
	}
}

func (s *supervisor) unregister(r *requestMonitor) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, subject := range r.subjects {
		delete(s.waiting[subject], r)
		if len(s.waiting[subject]) == 0 {
			delete(s.waiting, subject)
		}
	}
}

// complaint is called for each error that the server sends to the connection.
func (s *supervisor) complaint(err error, prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case isLogin(err):
		s.login = err
	case refusesInbox(err, prefix):
		s.noInbox = err
	}
	s.complained.note()
	for r := range s.waiting[refusedSubject(err)] {
		r.hear(err)
	}
}

func (s *supervisor) returned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.login, s.noInbox = nil, nil
}

// lost gives the loss of a connection a reason if the supervisor caused it.
func (s *supervisor) lost(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.forced {
		err = ErrSilent
	}
	s.forced = false
	return err
}

// inboxRefusal returns the server's refusal of an inbox, nil if there was none.
func (s *supervisor) inboxRefusal() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noInbox
}

// explain replaces the error of a request that was not sent if the server refuses the credentials.
func (s *supervisor) explain(err error) error {
	if s == nil || err == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.login != nil {
		return CredentialsRefused(s.login)
	}
	return err
}

// answered is called for each request that came back. A server that reports that it cannot reach
// the others is no better than a silent one. A server that was cut off still shows its data for a
// while, and describes the stream without end. So only a record that was read ends an outage of
// reads, and only a write that was applied ends one of writes.
func (s *supervisor) answered(m *nats.Msg, p Purpose) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case unable(m.Data, p), p == Write && refused(m.Data) && s.writes.ongoing():
		s.failed(time.Now(), p, true)
	case p == Write && !refused(m.Data):
		s.reads, s.writes = outage{}, outage{}
	case p == Read:
		s.reads = outage{}
	}
}

// unanswered is called for each request that ended without an answer, with its beginning. The
// length of its wait counts, not the reason for its end: a caller may have had little time, or have
// lost interest.
func (s *supervisor) unanswered(began time.Time, p Purpose, err error) {
	if s == nil || errors.Is(err, driver.ErrDenied) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		s.failed(began, p, true)
	case time.Since(began) >= suspicious:
		s.failed(began, p, false)
	}
}

// failed reconnects if nothing has succeeded for long, though the server is alive. It is called
// under the lock.
func (s *supervisor) failed(began time.Time, p Purpose, explained bool) {
	if p == Write {
		s.writes.add(began, explained)
	} else {
		s.reads.add(began, explained)
	}
	if tooLong(s.replaced, s.reads, s.writes) {
		s.begin(s.reconnect)
	}
}

// doubt asks the server for a sign of life, and replaces the connection if there is none.
func (s *supervisor) doubt() { s.try(s.ask) }

// moveOn replaces the connection because it leads to another cluster.
func (s *supervisor) moveOn() { s.try(s.reconnect) }

func (s *supervisor) try(do func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(do)
}

// begin starts a task that may replace the connection, unless one is under way or it is too early.
// It is called under the lock.
func (s *supervisor) begin(task func()) {
	if s.busy || s.tooEarly() {
		return
	}
	s.busy = true
	s.tasks.Go(task)
}

// tooEarly is called under the lock.
func (s *supervisor) tooEarly() bool { return s.closed || time.Since(s.replaced) < s.pause() }

func (s *supervisor) pause() time.Duration {
	return min(max(leastPause, s.reads.age()/8, s.writes.age()/8), mostPause)
}

// ask decides by the answer to a ping, which the connected server gives by itself, in any state of
// the stream's leader.
func (s *supervisor) ask() {
	before, start, patience := s.heard(), time.Now(), s.atLeast(pongWithin)
	err := s.nc.FlushTimeout(patience)
	took := time.Since(start)
	silent := errors.Is(err, nats.ErrTimeout) && took < 2*patience && s.heard() == before
	if silent && s.nc.IsConnected() {
		s.reconnect()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if err == nil {
		s.roundTrip = took
	}
}

// traffic identifies everything that a connection has received. A server that sends anything is
// alive, though its pong may have to wait behind much data. A process that was itself blocked for
// as long again cannot judge.
type traffic struct {
	reconnects, messages uint64
	complained           *time.Time
}

func (s *supervisor) heard() traffic {
	stats := s.nc.Stats()
	return traffic{stats.Reconnects, stats.InMsgs, s.complained.at.Load()}
}

// silence returns for how long a request that began at a time, or any like it, was neither answered
// nor refused.
func (s *supervisor) silence(answers *lastAnswer, began time.Time) time.Duration {
	d := answers.silence(began)
	if s != nil {
		d = min(d, s.complained.silence(began))
	}
	return d
}

// answerWithin returns how long a request may wait. The distance to a borrowed connection's server
// is not known.
func (s *supervisor) answerWithin() time.Duration {
	if s == nil {
		return 2 * time.Second
	}
	return s.atLeast(time.Second)
}

// atLeast returns how long a server may take: more than d if it is far away.
func (s *supervisor) atLeast(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(d, farther*s.roundTrip)
}

// reconnect replaces the connection, with the next server if several are known. The library may
// hold its lock for as long as a write may take, so only close waits for this.
func (s *supervisor) reconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if s.closed {
		return
	}
	s.replaced, s.forced = time.Now(), true
	s.tasks.Go(func() {
		_ = s.nc.ForceReconnect() // it fails only if the connection is closed
	})
}

const (
	// While a stream elects its leader, requests vanish, usually for 4 to 8 s, and the connection
	// is not at fault.
	silentFor = 4 * time.Second
	// A server that reports that it does not reach the others may be the only one.
	explainedFor = 2 * time.Second
	// nextOutage is how long after a failure the next one belongs to another outage.
	nextOutage = 10 * time.Second
)

// outage is a time in which no request succeeded. Its zero value is none.
type outage struct {
	since, last time.Time
	explained   bool // the server has given the reason
}

// add adds the failure of a request that began at a time.
func (o *outage) add(began time.Time, explained bool) {
	now := time.Now()
	if !o.ongoing() {
		*o = outage{since: began}
	}
	o.last, o.explained = now, o.explained || explained
}

// ongoing reports whether the next failure belongs to the outage.
func (o *outage) ongoing() bool { return !o.since.IsZero() && time.Since(o.last) <= nextOutage }

// age is 0 if the outage is over.
func (o *outage) age() time.Duration {
	if !o.ongoing() {
		return 0
	}
	return time.Since(o.since)
}

// tooLong reports whether outages are reason enough to leave the connection made at a time. Earlier
// failures do not count.
func tooLong(connected time.Time, outages ...outage) bool {
	limit, age := silentFor, time.Duration(0)
	for _, o := range outages {
		if o.ongoing() && o.explained {
			limit = explainedFor
		}
		age = max(age, o.age())
	}
	return min(age, time.Since(connected)) >= limit
}

// unable reports whether a server answers that it cannot carry out the request now: it has no
// leader, or an earlier write is under way. It searches the text, which is safe: the answer to a
// write holds no data, and other answers hold data only in base64.
func unable(answer []byte, p Purpose) bool {
	says := func(text string) bool { return bytes.Contains(answer, []byte(text)) }
	return says(`"code":503`) || p == Write && (says(`"err_code":10164`) || says(`"err_code":10158`))
}

// refused reports whether a write was answered by an error.
func refused(answer []byte) bool { return bytes.Contains(answer, []byte(`"error":`)) }

// lastAnswer is when the last answer came. Its zero value has none.
type lastAnswer struct{ at atomic.Pointer[time.Time] }

func (l *lastAnswer) note() {
	now := time.Now()
	l.at.Store(&now)
}

// silence returns for how long no answer has come to a request that was sent at a time.
func (l *lastAnswer) silence(sent time.Time) time.Duration {
	if at := l.at.Load(); at != nil && at.After(sent) {
		sent = *at
	}
	return time.Since(sent)
}
