package natskv

import (
	"context"
	"encoding/json"
	"errors"
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

// errLost is the end of a link.
var errLost = errors.New("the consumer of the bucket was lost")

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

// newHub returns a hub whose feed resumes after a loss where it was.
func newHub(from source, calls *abandon.Calls) *watches.Hub {
	return watches.NewHub(func(h *watches.Hub) watches.Follow {
		return (&feed{hub: h, from: from, calls: calls}).follow
	})
}

// feed brings the messages from the first watch to the last: each link resumes after the one
// before.
type feed struct {
	hub   *watches.Hub
	from  source
	calls *abandon.Calls
	life  life // of the links so far; 0 if not known
	// the floor of the last message delivered or known to be older; 0 if there is none
	last atomic.Uint64
}

// follow is a watches.Follow. Without a connection it waits for one, so that pushes come again as
// soon as there is one.
func (f *feed) follow(ctx context.Context, opened func(missed bool)) error {
	again, ignore := f.from.reconnects()
	defer ignore()
	l, err := f.open(ctx)
	for errors.Is(err, connection.ErrOffline) {
		select {
		case <-again:
			l, err = f.open(ctx)
		case <-ctx.Done():
			return err
		}
	}
	if err != nil {
		return err
	}
	defer l.stop()
	opened(false)
	select {
	case <-ctx.Done():
	case <-l.lost:
	case <-again:
	}
	return errLost
}

func (f *feed) open(ctx context.Context) (*link, error) {
	before := f.last.Load()
	l, err := abandon.Run(ctx, f.calls, func() (*link, error) { return f.from.open(ctx, before, f.pass) }, func(l *link) { l.stop() })
	if err != nil {
		return nil, err
	}
	if l.after > 0 {
		f.last.CompareAndSwap(before, l.after) // unless a message has come already
	}
	// After a recreation, the state of all elections may be void, and perhaps no message will ever
	// show that. The floor is that of the last sequence. The beginning of the life would be too
	// high where sequences begin at another clock's time, and a term above its own sequence could
	// recur after a purge.
	if l.recreated || f.life != 0 && l.life != 0 && l.life != f.life {
		f.hub.DeliverAll(driver.Entry{Era: uint64(l.life), Floor: l.floor})
	}
	f.life = l.life
	return l, nil
}

// pass keeps the last floor, not the highest one: a stream that was put back to an older state
// begins again from there.
func (f *feed) pass(key string, e driver.Entry) {
	f.last.Store(e.Floor)
	f.hub.Deliver(key, e)
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
