package fenced

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

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
