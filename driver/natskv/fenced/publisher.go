package fenced

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// rollupHeader makes a message replace those before it on its subject.
const rollupHeader = "Nats-Rollup"

// Publisher publishes to one stream for one term of an election. Its methods may be called
// concurrently. It does not need to be closed.
type Publisher struct {
	term   driver.Term
	wire   wire
	stream string
	fence  string
	need   time.Duration // of the lease, for each message
	born   time.Time
	rolls  bool // a message of the fence may replace the one before
	ttls   bool // and may say that it does not expire
	// replicated: for a moment two servers may believe that they lead the stream, and both get a
	// message.
	replicated bool

	lanes     [width]*lane
	free      chan *lane
	taking    chan struct{} // full while a call takes the fence back
	beginning uint64
}

// Begin returns a sequence of the stream: all messages of earlier terms stand before it, and all
// messages of this Publisher after it. A new leader that reads the stream up to it knows all that
// the earlier ones did.
func (p *Publisher) Begin() uint64 { return p.beginning }

// Publish sends one message and waits for the stream's acknowledgment. It sends a copy, which
// carries the token in a header; it ignores the message's reply subject. Up to 8 calls go on at the
// same time, more wait for their turn. Without a deadline in the context it gives up after 5 s. It
// checks the lease by itself: it needs no Term.Do.
//
// Nil means that the message is stored. If the acknowledgment says Duplicate, a message of the same
// Nats-Msg-Id was stored before, perhaps by another term. Otherwise the message is not stored and
// never will be, except where the error wraps ErrUnknown. Errors wrap tenure.ErrLost if the term is
// over; tenure.ErrTooLate if too little is left of the lease; ErrFenced; ErrUnknown; ErrHeader;
// ErrUnfit if the fence had to be taken back and cannot be kept (the stream was recreated, or the
// account maps its subjects by now); driver.ErrDenied and the subject; jetstream.APIError if the
// server refuses for another reason; nats.ErrNoResponders if the stream has no leader now or does
// not listen on the subject; or ctx's cause.
func (p *Publisher) Publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	if err := p.usable(m); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	var ack *jetstream.PubAck
	err := p.term.Do(ctx, p.need, func(ctx context.Context) (err error) {
		select {
		case l := <-p.free:
			defer func() { p.free <- l }()
			ack, err = p.pass(ctx, l, p.copied(m))
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return nil, explain(p.term, fmt.Errorf("fenced: %s: %w", m.Subject, err))
	}
	if m.Header.Get(jetstream.MsgIDHeader) == "" {
		ack.Duplicate = false
	}
	return ack, nil
}

// copied returns the message to send. With an id it can be sent to a replicated stream again.
func (p *Publisher) copied(m *nats.Msg) *nats.Msg {
	c := stamped(m, p.term.Token())
	c.Header.Set(jetstream.ExpectedStreamHeader, p.stream)
	if p.replicated && c.Header.Get(jetstream.MsgIDHeader) == "" {
		c.Header.Set(jetstream.MsgIDHeader, rand.Text())
	}
	return c
}

// foreign are headers that replace the fence's, or make the server publish at another time, when it
// checks no fence.
var foreign = []string{jetstream.ExpectedLastSubjSeqHeader, jetstream.ExpectedLastSubjSeqSubjHeader, jetstream.ScheduleHeader, "Nats-Batch-Id"}

// usable refuses headers that defeat the fence, also a roll-up of all, which removes it. Each
// replica of a stream takes the refusal of a last id for an error in its log from which it cannot
// go on.
func (p *Publisher) usable(m *nats.Msg) error {
	for name, values := range m.Header {
		if p.replicated && strings.EqualFold(name, jetstream.ExpectedLastMsgIDHeader) {
			return fmt.Errorf("%w: %s: leave it out: a replicated stream stops for good when its servers refuse a message "+
				"because of this header (seen with nats-server 2.15.2)", ErrHeader, name)
		}
		if strings.EqualFold(name, rollupHeader) && slices.ContainsFunc(values, rollsAll) {
			return fmt.Errorf("%w: %s: the value all removes the fence too: use sub, which rolls up single subjects", ErrHeader, name)
		}
		for _, f := range foreign {
			if strings.EqualFold(name, f) {
				return fmt.Errorf("%w: %s", ErrHeader, name)
			}
		}
	}
	return nil
}

func rollsAll(value string) bool { return strings.EqualFold(strings.TrimSpace(value), "all") }

// checkLease returns nil if enough of the lease is left.
func (p *Publisher) checkLease() error {
	return p.term.Do(context.Background(), p.need, func(context.Context) error { return nil })
}

// pass sends a message through a lane. It repeats that while the answer is only that another
// message is on its way, or that the lane's last message is not the expected one. The latter is the
// end of a deposed leader. But the message may have expired or been purged, and then a leader whose
// lease is valid takes the fence back.
func (p *Publisher) pass(ctx context.Context, l *lane, m *nats.Msg) (*jetstream.PubAck, error) {
	held := l.sequence.Load()
	if held == 0 { // as a condition it would come true where there is no fence
		var err error
		if held, err = p.retake(ctx, l, 0); err != nil {
			return nil, err
		}
	}
	if err := p.checkLease(); err != nil {
		return nil, err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		expect(m.Header, l.subject, held)
		ack, err := acknowledged(p.wire.request(ctx, m))
		var moved *movedError
		switch {
		case err == nil:
			return ack, nil
		case errors.As(err, &moved):
			var final error
			if held, final = p.refused(ctx, l, held, m, moved); final != nil {
				return nil, final
			}
		case !errors.Is(err, errBusy) && pause == firstPause && !stateful(err):
			return nil, err
		// An earlier send may have reached another server that stores it.
		case !errors.Is(err, errBusy):
			return nil, p.doubt(err)
		}
		if !sleep(ctx, pause) {
			return nil, p.doubt(gaveUp(ctx, err))
		}
		if err := p.checkLease(); err != nil {
			return nil, p.doubt(err)
		}
	}
}

// refused finds out why a message was refused that was sent under the condition of a sequence, and
// takes the fence back if it has gone. It returns the sequence for the next send, also where the
// answer came from a server that does not know the newer term's fence yet. Only a server that knows
// it can confirm that the message is not stored: it has all that stands before the fence, and would
// know the message's id. With a condition of the caller's own, this does not hold: the sequence in
// the answer may then be the last one of the stream, including messages that are only proposed.
func (p *Publisher) refused(
	ctx context.Context, l *lane, held uint64, m *nats.Msg, moved *movedError,
) (uint64, error) {
	found, own, err := p.look(ctx, l.subject)
	conditional := m.Header.Get(jetstream.ExpectedLastSeqHeader) != ""
	var taken *takenError
	switch {
	case errors.As(err, &taken) && moved.last < taken.at:
		return held, nil
	case errors.As(err, &taken) && !conditional:
		return 0, err
	case err != nil:
		return 0, p.doubt(err)
	case own && found == held && conditional:
		return 0, p.doubt(fmt.Errorf("the server refused, and not for the fence: %w", moved.why))
	case own && found == held:
		return held, nil
	}
	if held, err = p.retake(ctx, l, held); err != nil {
		return 0, p.doubt(err)
	}
	return held, nil
}

// retake takes the whole fence back when the lane is no longer held under a sequence, and returns
// the new one. A leader that took back one lane only would leave the others to an older leader
// whose clocks stood still. That one gets nothing as long as a newer term has a single lane.
func (p *Publisher) retake(ctx context.Context, l *lane, held uint64) (uint64, error) {
	select {
	case p.taking <- struct{}{}:
		defer func() { <-p.taking }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if now := l.sequence.Load(); now != held && now != 0 {
		return now, nil // another call has taken it back since
	}
	if err := p.same(ctx); err != nil {
		return 0, err
	}
	p.hold([width]uint64{}) // until all is taken, and it is known that it is in the same stream
	sequences, err := p.takeAll(ctx)
	if err == nil {
		err = p.same(ctx)
	}
	if err != nil {
		return 0, err
	}
	p.hold(sequences)
	return l.sequence.Load(), nil
}

// doubt adds that another server may have stored a message that one has not accepted.
func (p *Publisher) doubt(err error) error {
	if !p.replicated {
		return err
	}
	return fmt.Errorf("%w (%w)", ErrUnknown, err)
}

const (
	// Header is the name of the header that carries the fencing token of the term, in decimal
	// digits.
	Header = "Tenure-Token"
	// FenceHeader is the name of the header that only messages of the fence have, with the
	// election's name.
	FenceHeader = "Tenure-Fence"
	// holderHeader distinguishes two leaders that, by mistake, have the same token.
	holderHeader = "Tenure-Holder"
)

// holder identifies this process.
var holder = rand.Text()

// Token returns the fencing token of the term that wrote a message with these headers, and false if
// they hold none.
func Token(h nats.Header) (token uint64, ok bool) {
	token, err := strconv.ParseUint(h.Get(Header), 10, 64)
	return token, err == nil
}

// IsFence reports whether a message with these headers belongs to the fence. Consumers should
// ignore such messages. They stand in the stream between the messages of two terms.
func IsFence(h nats.Header) bool { return h.Get(FenceHeader) != "" }

// stamped returns a copy that carries the token.
func stamped(m *nats.Msg, token uint64) *nats.Msg {
	c := &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
	if c.Header == nil {
		c.Header = nats.Header{}
	}
	c.Header.Set(Header, strconv.FormatUint(token, 10))
	return c
}

// Open takes the fence of a stream for a term. The fence is a few subjects of the stream below the
// one given, such as "payments.fence" for a stream that listens on "payments.>". All candidates of
// an election must give the same one, and no other program may use it. The connection stays the
// caller's.
//
// When it returns nil, the stream has all messages of earlier terms that it will ever have, and
// they stand before [Publisher.Begin]. Opening twice in a term takes nothing away from the first
// Publisher. Without a deadline in the context it gives up after 5 s. If the work cannot begin
// without the fence, lead may return tenure.ErrDecline: then Run goes on, and another candidate may
// lead.
//
// Errors wrap tenure.ErrLost if the term is over, and ErrFenced as well if the fence showed it;
// tenure.ErrTooLate; ErrFenced alone if another election or leader uses the fence; ErrUnfit;
// jetstream.ErrStreamNotFound; driver.ErrDenied and the subject; or ctx's cause.
func Open(ctx context.Context, t driver.Term, js jetstream.JetStream, stream, fence string, opts ...Option) (*Publisher, error) {
	if err := checkNames(stream, fence); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	p := &Publisher{
		term: t, wire: newWire(js), stream: stream, fence: fence, need: defaultNeed,
		free: make(chan *lane, width), taking: make(chan struct{}, 1),
	}
	for _, o := range opts {
		o(p)
	}
	err := t.Do(ctx, p.need, p.begin)
	if err == nil {
		err = p.checkLease()
	}
	if err != nil {
		return nil, explain(t, fmt.Errorf("fenced: stream %s: %w", stream, err))
	}
	return p, nil
}

func checkNames(stream, fence string) error {
	if stream == "" || strings.ContainsAny(stream, ".*> \t\r\n") {
		return fmt.Errorf("fenced: %q is no name of a stream", stream)
	}
	if fence == "" || strings.ContainsAny(fence, "*>\"\\ \t\r\n") || strings.Contains("."+fence+".", "..") {
		return fmt.Errorf("fenced: %q is no subject without wildcards", fence)
	}
	return nil
}

// begin takes all lanes. Their subjects contain the stream's time of creation: a stream that was
// deleted and recreated begins its sequences again, and an old leader's condition must not come
// true there.
func (p *Publisher) begin(ctx context.Context) error {
	s, err := p.info(ctx)
	if err != nil {
		return err
	}
	if err := s.fit(p.fence); err != nil {
		return err
	}
	p.born, p.rolls, p.ttls, p.replicated = s.Created, s.rolls(), s.Config.TTLs, s.Config.Replicas > 1
	for i := range p.lanes {
		p.lanes[i] = &lane{subject: fmt.Sprintf("%s.%s.%d", p.fence, strconv.FormatInt(s.Created.UnixNano(), 36), i)}
		p.free <- p.lanes[i]
	}
	sequences, err := p.takeAll(ctx)
	if err != nil {
		return err
	}
	p.hold(sequences)
	p.beginning = slices.Max(sequences[:])
	return p.same(ctx)
}

// bounded adds a deadline to a context that has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("no answer within %v: %w", callTimeout, context.DeadlineExceeded))
}

const (
	// defaultNeed is some round trips to a near cluster, and little of the shortest lease on NATS.
	defaultNeed = 100 * time.Millisecond
	// callTimeout bounds a call whose context has no deadline.
	callTimeout = 5 * time.Second
)

// Option changes how Open makes a Publisher.
type Option func(*Publisher)

// WithNeed sets how much of the lease must be left to take the fence and to send a message: 100 ms
// if not set. With less the call returns tenure.ErrTooLate. A leader that renews in time always has
// three fifths of its lease left.
func WithNeed(d time.Duration) Option { return func(p *Publisher) { p.need = max(d, 0) } }

// levelKey is where servers since 2.11, which introduced the condition on another subject, report
// their abilities.
const levelKey = "_nats.level"

// stream is the part of the stream leader's answer to STREAM.INFO that a fence needs.
type stream struct {
	Created time.Time `json:"created"`
	Config  struct {
		Subjects  []string          `json:"subjects"`
		Retention string            `json:"retention"`
		Replicas  int               `json:"num_replicas"`
		Silent    bool              `json:"no_ack"`
		PerKey    int64             `json:"max_msgs_per_subject"`
		Rollup    bool              `json:"allow_rollup_hdrs"`
		DenyPurge bool              `json:"deny_purge"`
		TTLs      bool              `json:"allow_msg_ttl"`
		Persist   string            `json:"persist_mode"`
		Mirror    *struct{}         `json:"mirror"`
		Transform *struct{}         `json:"subject_transform"`
		Metadata  map[string]string `json:"metadata"`
	} `json:"config"`
}

// rolls reports whether a message of the fence may remove the one before it.
func (s stream) rolls() bool { return s.Config.Rollup && !s.Config.DenyPurge }

// fit refuses a stream that cannot keep a fence. With every other setting, messages are refused
// when the fence goes missing.
func (s stream) fit(fence string) error {
	switch c := s.Config; {
	case c.Metadata[levelKey] == "":
		return fmt.Errorf("%w: its server is older than 2.11, which does not know the header %s: update all servers",
			ErrUnfit, jetstream.ExpectedLastSubjSeqSubjHeader)
	case c.Mirror != nil:
		return fmt.Errorf("%w: it is a mirror: publish to the original", ErrUnfit)
	case !slices.ContainsFunc(c.Subjects, func(filter string) bool { return listens(filter, fence) }):
		return fmt.Errorf("%w: it does not listen on %s: add the subject %s.>", ErrUnfit, fence, fence)
	case c.Silent:
		return fmt.Errorf("%w: it acknowledges nothing: make it without no_ack", ErrUnfit)
	case c.Persist == "async":
		return fmt.Errorf("%w: its persist_mode is async, so that a server that is killed forgets fences that it "+
			"has acknowledged: recreate it without persist_mode", ErrUnfit)
	case c.Transform != nil:
		return fmt.Errorf("%w: it transforms subjects, so that the fence is not stored where it is looked for", ErrUnfit)
	case c.Retention == "interest":
		return fmt.Errorf("%w: its retention is interest, so that it does not keep the fence: make it with limits", ErrUnfit)
	case c.Retention == "workqueue" && !s.rolls() && c.PerKey != 1:
		return fmt.Errorf("%w: its retention is workqueue, so that an older message of the fence can outlive a newer one: "+
			"allow roll-ups, by which the newer removes it (nats stream add --allow-rollup)", ErrUnfit)
	}
	return nil
}

// listens reports whether a stream with this filter among its subjects stores messages that are
// published two tokens below the fence.
func listens(filter, fence string) bool {
	have := append(strings.Split(fence, "."), "born", "lane")
	for i, token := range strings.Split(filter, ".") {
		switch {
		case i == len(have):
			return false
		case token == ">":
			return true
		case token != "*" && token != have[i]:
			return false
		}
	}
	return strings.Count(filter, ".")+1 == len(have)
}

// info describes the stream, from its leader.
func (p *Publisher) info(ctx context.Context) (s stream, err error) {
	err = insist(ctx, func() error {
		s = stream{}
		return p.wire.ask(ctx, "STREAM.INFO."+p.stream, nil, &s)
	})
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamNotFound {
		err = fmt.Errorf("%w (%w)", jetstream.ErrStreamNotFound, err)
	}
	return s, err
}

// same returns nil if the stream is still the one that was opened. It is checked after the fence
// was taken: in another stream of that name the next leader would not look for it there.
func (p *Publisher) same(ctx context.Context) error {
	s, err := p.info(ctx)
	if err == nil && !s.Created.Equal(p.born) {
		err = fmt.Errorf("%w: the stream was deleted and recreated: open the fence again", ErrUnfit)
	}
	return err
}

// post is a message of a stream, with sequence 0 if it is not there.
type post struct {
	Subject  string `json:"subject"`
	Sequence uint64 `json:"seq"`
	Header   []byte `json:"hdrs"`
}

// last returns the last message on a subject.
func (w wire) last(ctx context.Context, name, subject string) (post, error) {
	return w.get(ctx, name, fmt.Appendf(nil, "{\"last_by_subj\":%q}", subject))
}

// at returns the message with a sequence.
func (w wire) at(ctx context.Context, name string, sequence uint64) (post, error) {
	return w.get(ctx, name, fmt.Appendf(nil, "{\"seq\":%d}", sequence))
}

// get asks the stream's leader, which decides on writes.
func (w wire) get(ctx context.Context, name string, which []byte) (post, error) {
	var got struct {
		Message post `json:"message"`
	}
	err := w.ask(ctx, "STREAM.MSG.GET."+name, which, &got)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeMessageNotFound {
		return post{}, nil
	}
	return got.Message, err
}

func (p post) headers() nats.Header {
	h, _ := nats.DecodeHeadersMsg(p.Header)
	return h
}

// denialPause is the time between two checks whether a request was refused. It is so long that most
// answers come before the first check.
const denialPause = 20 * time.Millisecond

// watchRefusal calls found with the reason if the server refuses a request because a right is
// missing, or if the connection is lost. The server reports that to the connection and not to the
// request. Stop must be called.
func (w wire) watchRefusal(subject string, found context.CancelCauseFunc) (stop func()) {
	nc, names := w.nc, w.names(subject)
	before, connects, over := nc.LastError(), nc.Stats().Reconnects, make(chan struct{})
	timer := time.AfterFunc(denialPause, func() {
		for {
			if name := refused(nc.LastError(), before, names); name != "" {
				found(fmt.Errorf("%w: the user may not publish to %s: grant publish on it", driver.ErrDenied, name))
				return
			}
			if nc.Stats().Reconnects != connects {
				found(errLost)
				return
			}
			select {
			case <-over:
				return
			case <-time.After(denialPause):
			}
		}
	})
	return func() {
		close(over)
		timer.Stop()
	}
}

// names returns the names under which a server may check the rights to a subject: a server in a
// JetStream domain removes the domain first.
func (w wire) names(subject string) []string {
	if bare, ours := strings.CutPrefix(subject, w.api); ours && w.api != jetstream.DefaultAPIPrefix {
		return []string{subject, jetstream.DefaultAPIPrefix + bare}
	}
	return []string{subject}
}

// refused returns the subject to which a publish was refused by an error that was not there before;
// empty if there is none.
func refused(err, before error, subjects []string) string {
	same := err == before //nolint:errorlint // the same event, not one of its kind
	if same || !errors.Is(err, nats.ErrPermissionViolation) {
		return ""
	}
	for _, subject := range subjects {
		if strings.Contains(err.Error(), fmt.Sprintf("Publish to %q", subject)) {
			return subject
		}
	}
	return ""
}
