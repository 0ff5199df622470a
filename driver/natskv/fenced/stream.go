package fenced

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

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
