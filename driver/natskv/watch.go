package natskv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/watches"
)

var errClosed = errors.New("the store is closed")

// hub gives the entries of one feed to the watches of each key. There may be ten thousand watches,
// of as many keys.
type hub struct {
	from  source
	calls *abandon.Calls
	// held by the caller that starts the feed; a channel, so that waiting for it heeds the context
	turn chan struct{}

	mu      sync.Mutex
	closed  bool
	lost    error              // why no messages come; nil: they come
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	watches watches.Set
	feeds   sync.WaitGroup // all that were ever started
}

func newHub(from source, under *abandon.Calls) *hub {
	return &hub{from: from, calls: under, turn: make(chan struct{}, 1)}
}

func (h *hub) watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	w := watches.New(key, see)
	h.mu.Lock()
	h.watches.Put(w)
	h.mu.Unlock()
	if err := h.start(ctx); err != nil {
		h.remove(w)
		return nil, err
	}
	if lost := h.silence(); lost != nil {
		w.Push(driver.Entry{Lost: lost})
		if h.silence() == nil { // since a moment ago
			w.Push(driver.Entry{Unverified: true})
		}
	}
	return func() { h.remove(w) }, nil
}

// pushes notes why no messages come, or nil if they come, and tells all watches. The context is
// that of the feed.
func (h *hub) pushes(ctx context.Context, lost error) {
	h.mu.Lock()
	was, ended := h.lost, ctx.Err() != nil
	if !ended {
		h.lost = lost
	}
	h.mu.Unlock()
	switch {
	case ended: // another feed may be running
	case lost != nil: // each time: a message that was under way may have come since
		h.tellAll(driver.Entry{Lost: lost})
	case was != nil:
		h.tellAll(driver.Entry{Unverified: true}) // makes them read
	}
}

// silence returns why no messages come; nil: they come.
func (h *hub) silence() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// remove stops the feed with the last watch.
func (h *hub) remove(w *watches.Watch) {
	if !w.Stop() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches.Remove(w)
	if h.watches.Empty() {
		h.stop()
	}
}

// stop is called under the lock.
func (h *hub) stop() {
	if h.halt != nil {
		h.halt()
		h.halt = nil
	}
}

// start makes sure that a feed is running. One caller sets it up; the others wait for that.
func (h *hub) start(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if running, err := h.running(); running || err != nil {
		return err
	}
	f := &feed{hub: h}
	if err := f.open(ctx); err != nil { // within the context, so that its errors are the caller's
		return err
	}
	return h.adopt(f)
}

func (h *hub) running() (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false, errClosed
	}
	return h.halt != nil, nil
}

// adopt runs the feed, unless the hub was closed while it was set up.
func (h *hub) adopt(f *feed) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		f.link.stop()
		return errClosed
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.halt, h.lost = cancel, nil
	h.feeds.Go(func() { f.run(ctx) })
	return nil
}

// deliver calls the watches without the lock, so that they may use the store.
func (h *hub) deliver(key string, e driver.Entry) {
	h.mu.Lock()
	all := h.watches.Of(key)
	h.mu.Unlock()
	watches.Push(all, e)
}

// recreated notifies all watches that the bucket was recreated or put back: their state may be
// void, and perhaps no message will ever show that.
//
// The floor is that of the last sequence. The beginning of the life would be too high where
// sequences begin at another clock's time, and a term above its own sequence could recur after a
// purge.
func (h *hub) recreated(l *link) {
	h.tellAll(driver.Entry{Era: uint64(l.life), Floor: l.floor})
}

// tellAll pushes an entry to the watches of all keys.
func (h *hub) tellAll(e driver.Entry) {
	h.mu.Lock()
	all := h.watches.All()
	h.mu.Unlock()
	watches.Push(all, e)
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.watches.StopAll()
	h.stop()
	h.mu.Unlock()
	h.feeds.Wait()
}

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
	hub  *hub
	link *link
	life life // of the links so far; 0 if not known
	// the floor of the last message delivered or known to be older; 0 if there is none
	last atomic.Uint64
}

func (f *feed) open(ctx context.Context) error {
	before := f.last.Load()
	l, err := abandon.Run(ctx, f.hub.calls, func() (*link, error) { return f.hub.from.open(ctx, before, f.pass) }, (*link).end)
	if err != nil {
		return err
	}
	f.link = l
	if l.after > 0 {
		f.last.CompareAndSwap(before, l.after) // unless a message has come already
	}
	if l.recreated || f.life != 0 && l.life != 0 && l.life != f.life {
		f.hub.recreated(l)
	}
	f.life = l.life
	return nil
}

// pass keeps the last floor, not the highest one: a stream that was put back to an older state
// begins again from there.
func (f *feed) pass(key string, e driver.Entry) {
	f.last.Store(e.Floor)
	f.hub.deliver(key, e)
}

// run ends with the context, and stops the link then.
func (f *feed) run(ctx context.Context) {
	again, stop := f.hub.from.reconnects()
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
			f.hub.pushes(ctx, nil)
			return true
		}
		f.hub.pushes(ctx, fmt.Errorf("no changes of the bucket are pushed: %w", err))
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

const (
	// heartbeat is the interval at which the server reports that there are no messages.
	heartbeat = 2 * time.Second
	// silence is when the consumer counts as lost: two heartbeats are missing.
	silence = 5 * time.Second
)

// consumer receives the messages that the server pushes from the stream. A plain subscription to
// the keys' subjects does not suffice: it also gets publishes that the stream then refuses.
type consumer struct {
	stored  string // prefix of the keys' subjects
	life    life   // of the stream
	deliver func(key string, e driver.Entry)
	count   uint64 // messages received; the server numbers them for this consumer
	quiet   *time.Timer
	// resumes reports whether the next link begins after the last message delivered, or where this
	// link began. Messages may arrive before open knows that.
	resumes atomic.Bool

	once sync.Once
	lost chan struct{}
}

// open creates an ephemeral consumer, which the server keeps in memory and removes by itself 5 s
// after its subscription is gone. So nothing has to be deleted, and no right to delete is needed.
func (b *bucket) open(ctx context.Context, after uint64, deliver func(string, driver.Entry)) (*link, error) {
	info, err := b.info(ctx)
	if err != nil {
		return nil, err
	}
	c := &consumer{stored: b.stored, life: info.life(), deliver: deliver, lost: make(chan struct{})}
	c.resumes.Store(after > 0)
	c.quiet = time.AfterFunc(silence, c.lose)
	inbox := b.conn.NATS().NewInbox()
	sub, err := b.conn.NATS().Subscribe(inbox, c.receive)
	if err != nil {
		c.quiet.Stop()
		return nil, err
	}
	stop := func() {
		// It fails only without a connection, and then the server has dropped it.
		_ = sub.Unsubscribe()
		c.quiet.Stop()
	}
	l := &link{life: c.life, floor: info.floor(), recreated: after > 0 && info.resumable(after) == 0, lost: c.lost, stop: stop}
	if l.after, err = b.bind(ctx, inbox, info, after); err != nil {
		stop()
		return nil, err
	}
	if l.after > 0 {
		c.resumes.Store(true)
	}
	return l, nil
}

// bind creates the consumer and returns the floor after which it starts, 0 if the server gives
// none. The consumer must belong to the very stream that was described before, since its messages
// are reported as of that life of the bucket.
func (b *bucket) bind(ctx context.Context, inbox string, was streamInfo, after uint64) (uint64, error) {
	first, err := b.addConsumer(ctx, inbox, was.resumable(after))
	if err != nil {
		return 0, err
	}
	info, err := b.info(ctx)
	switch {
	case err != nil:
		return 0, err
	case info.life() != was.life():
		return 0, errors.New("the bucket was recreated while a watch was set up")
	case first == 0:
		return 0, nil
	}
	return was.life().floor(first), nil
}

// resumable returns the sequence of a floor. It returns 0 if the floor is of another life of the
// bucket, or if the stream does not reach that far: a consumer that starts beyond its end would get
// nothing until the stream has grown to its old length.
//
// Where sequences do not recur, a floor of another life looks like a sequence before the first
// message. Then the consumer begins with the first message, and the feed sees by the life of its
// links that the bucket is another one.
func (i streamInfo) resumable(after uint64) uint64 { return i.life().sequence(after, i.State.LastSeq) }

// reconnects signals each new connection, because the server removes a consumer without a
// subscription, and a restarted server has none.
func (b *bucket) reconnects() (again <-chan nats.Status, stop func()) {
	nc := b.conn.NATS()
	statuses := nc.StatusChanged(nats.CONNECTED)
	return statuses, func() { nc.RemoveStatusListener(statuses) }
}

// addConsumer returns the sequence after which the consumer starts, 0 if the server gives none.
// First it checks the right to answer flow control. Without that right everything works until so
// many messages are pending that the server waits for the answer.
func (b *bucket) addConsumer(ctx context.Context, inbox string, after uint64) (uint64, error) {
	name := inbox[strings.LastIndexByte(inbox, '.')+1:] // as unique as the inbox
	request := map[string]any{
		"stream_name": b.stream,
		"action":      "create",
		"config":      b.consumerConfig(name, inbox, after),
	}
	body, err := json.Marshal(request)
	if err != nil {
		return 0, err
	}
	var got struct {
		answer
		Delivered struct {
			Stream uint64 `json:"stream_seq"`
		} `json:"delivered"`
	}
	flow := connection.FlowControl + b.stream + "." + name + ".try"
	if err := b.conn.NATS().Publish(flow, nil); err != nil {
		return 0, err
	}
	err = b.call(ctx, connection.CreateConsumer+b.stream+"."+name+"."+b.stored+">", body, &got, flow)
	return got.Delivered.Stream, err
}

// consumerConfig asks for flow control, so that the backlog of a long outage does not overrun the
// connection, which the program also uses for other traffic.
func (b *bucket) consumerConfig(name, inbox string, after uint64) map[string]any {
	c := map[string]any{
		"name":            name,
		"deliver_subject": inbox,
		"filter_subject":  b.stored + ">",
		"deliver_policy":  "new",
		"ack_policy":      "none",
		"replay_policy":   "instant",
		"flow_control":    true,
		"idle_heartbeat":  heartbeat,
		"mem_storage":     true,
		"num_replicas":    1,
	}
	if after > 0 {
		c["deliver_policy"] = "by_start_sequence"
		c["opt_start_seq"] = after + 1
	}
	return c
}

// lose reports the loss of the link. It may be called more than once. Messages that still arrive
// without a gap are delivered.
func (c *consumer) lose() { c.once.Do(func() { close(c.lost) }) }

// receive is called by one goroutine of the library, for one message at a time.
func (c *consumer) receive(m *nats.Msg) {
	c.quiet.Reset(silence)
	switch m.Header.Get("Status") {
	case "":
		c.message(m)
	case "100":
		c.control(m)
	default: // the consumer was deleted
		c.lose()
	}
}

// message counts messages, because the library drops those that its queue cannot take, and a
// connection that breaks loses those that were on their way. After a gap it leaves all messages to
// the next link, which also brings the missing ones. A message delivered here would let the next
// link begin after it, and the changes of other keys in the gap would never be delivered. That can
// still happen to the first messages of a bucket that counts from 1: before them there is no
// sequence to resume after. Elections then notice the change when they next read.
func (c *consumer) message(m *nats.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		return
	}
	c.count++
	if meta.Sequence.Consumer != c.count {
		c.lose()
		if c.resumes.Load() {
			return
		}
	}
	c.deliver(strings.TrimPrefix(m.Subject, c.stored), c.life.entry(meta.Sequence.Stream, m.Data))
	c.resumes.Store(true)
}

// control answers flow control and checks by heartbeats whether the last messages were missed. The
// next heartbeat repeats the request for a lost answer.
func (c *consumer) control(m *nats.Msg) {
	if m.Reply != "" {
		_ = m.Respond(nil)
		return
	}
	if stalled := m.Header.Get("Nats-Consumer-Stalled"); stalled != "" {
		m.Reply = stalled
		_ = m.Respond(nil)
	}
	sent, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64)
	if err == nil && sent > c.count {
		c.lose()
	}
}
