package natskv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/watches"
)

var _ driver.Presence = (*Store)(nil)

// presenceSubject is followed by the name of the bucket.
const presenceSubject = "tenure.candidates."

const (
	// answersWithin is less than the time after which a silent connection is doubted.
	answersWithin = 250 * time.Millisecond
	// maxAnswer bounds one answer of a process, which shares the connection with its renewals, and
	// the bytes of all its answers within a second.
	maxAnswer = 256 << 10
	// answerRoom is left of the server's maximum for the message's subject and the like.
	answerRoom = 4 << 10
)

// presence answers questions about the candidates of this process, over one subscription.
type presence struct {
	conn    *connection.Conn
	subject string
	calls   abandon.Calls
	turn    chan struct{} // held by the caller that subscribes

	mu     sync.Mutex
	sub    *nats.Subscription // nil: none
	closed bool
	here   map[string][]*announced // by key
	second time.Time               // when the present second of answers began
	spent  int                     // bytes in it
}

// announced is one candidate.
type announced struct{ who func() []byte }

func newPresence(conn *connection.Conn, bucket string) *presence {
	return &presence{conn: conn, subject: presenceSubject + bucket, turn: make(chan struct{}, 1), here: map[string][]*announced{}}
}

// Announce answers questions about the key until stop is called, see driver.Presence. All
// announcements of a Store share one subscription, to tenure.candidates.BUCKET. The first one makes
// it, and the last one ends it. Nothing is sent in steady state. Over a handle, which hides the
// connection, Announce returns an error that wraps errors.ErrUnsupported.
func (s *Store) Announce(ctx context.Context, key string, who func() []byte) (stop func(), err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	a := &announced{who}
	if err = s.presence.add(ctx, key, a); err != nil {
		return nil, fmt.Errorf("natskv: announce a candidate of %s in bucket %s: %w", key, s.cells.bucket(), err)
	}
	return sync.OnceFunc(func() { s.presence.remove(key, a) }), nil
}

// Candidates asks over tenure.candidates.BUCKET, and waits 250 ms for answers; it returns at once
// if no process has a candidate in the bucket. Each process with candidates of the key sends one
// message. Buckets of one name in several JetStream domains of one account share the subject.
// Errors are as for Announce.
func (s *Store) Candidates(ctx context.Context, key string) ([][]byte, error) {
	all, err := s.presence.ask(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("natskv: ask for the candidates in bucket %s: %w", s.cells.bucket(), err)
	}
	return all, nil
}

func (p *presence) add(ctx context.Context, key string, a *announced) error {
	if p == nil {
		return errors.ErrUnsupported
	}
	p.mu.Lock()
	p.here[key] = append(p.here[key], a)
	p.mu.Unlock()
	err := p.subscribe(ctx)
	if err != nil {
		p.remove(key, a)
	}
	return err
}

// subscribe makes sure that there is a subscription. One caller makes it; the others wait for that.
func (p *presence) subscribe(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	done, closed := p.sub != nil, p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return watches.ErrClosed
	case done:
		return nil
	}
	sub, err := abandon.Run(ctx, &p.calls, func() (*nats.Subscription, error) {
		return p.conn.Subscribe(ctx, p.subject, p.answer)
	}, unsubscribe)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.sub = sub
	p.mu.Unlock()
	p.endUnused()
	return nil
}

func unsubscribe(sub *nats.Subscription) {
	_ = sub.Unsubscribe() // it fails only if the subscription has ended
}

func (p *presence) remove(key string, a *announced) {
	p.mu.Lock()
	left := slices.DeleteFunc(p.here[key], func(one *announced) bool { return one == a })
	p.here[key] = left
	if len(left) == 0 {
		delete(p.here, key)
	}
	p.mu.Unlock()
	p.endUnused()
}

// endUnused ends the subscription if no candidate is left.
func (p *presence) endUnused() {
	p.mu.Lock()
	sub := p.sub
	if len(p.here) > 0 {
		sub = nil
	}
	if sub != nil {
		p.sub = nil
	}
	p.mu.Unlock()
	if sub != nil {
		unsubscribe(sub)
	}
}

func (p *presence) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	clear(p.here)
	p.mu.Unlock()
	p.endUnused()
}

// answer sends one message with all candidates of this process that the question is about. A
// process without any sends none. More answers than maxAnswer in a second are left out: questions
// cannot fill the connection, over which the leaders of this process renew.
func (p *presence) answer(m *nats.Msg) {
	room := p.room()
	if m.Reply == "" || room <= 0 {
		return
	}
	var text []byte
	for _, a := range p.about(string(m.Data)) {
		one := a.who()
		if len(one) == 0 || len(one) > driver.MaxPresence || bytes.IndexByte(one, '\n') >= 0 {
			continue
		}
		if len(text)+len(one)+1 > room {
			break
		}
		text = append(append(text, one...), '\n')
	}
	if len(text) == 0 {
		return
	}
	p.mu.Lock()
	p.spent += len(text)
	p.mu.Unlock()
	_ = p.conn.NATS().Publish(m.Reply, text) // an error means that the connection is lost
}

// room returns how many bytes may be sent now.
func (p *presence) room() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.second) >= time.Second {
		p.second, p.spent = now, 0
	}
	return min(maxAnswer-p.spent, int(p.conn.NATS().MaxPayload())-answerRoom)
}

// about returns the candidates of a key, or all if it is empty, in the order of the keys.
func (p *presence) about(key string) []*announced {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key != "" {
		return slices.Clone(p.here[key])
	}
	var all []*announced
	for _, key := range slices.Sorted(maps.Keys(p.here)) {
		all = append(all, p.here[key]...)
	}
	return all
}

func (p *presence) ask(ctx context.Context, key string) ([][]byte, error) {
	switch {
	case p == nil:
		return nil, errors.ErrUnsupported
	case key != "":
		if err := checkKey(key); err != nil {
			return nil, err
		}
	}
	answers, err := abandon.Run(ctx, &p.calls, func() ([]*nats.Msg, error) {
		return p.conn.Ask(ctx, p.subject, []byte(key), answersWithin)
	}, abandon.NoUndo)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, m := range answers {
		for one := range bytes.SplitSeq(m.Data, []byte("\n")) {
			if len(one) > 0 && len(one) <= driver.MaxPresence {
				all = append(all, one)
			}
		}
	}
	return all, nil
}
