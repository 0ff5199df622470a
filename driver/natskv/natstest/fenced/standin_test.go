//go:build integration

package fenced_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
	"github.com/tenure-go/tenure/driver/natskv/natstest"
	"github.com/tenure-go/tenure/internal/test/deposed"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// standIn gives a test's answers for a stream. A cluster may answer like that while two servers
// lead the stream for a moment.
type standIn struct {
	*scene
	info string

	mu      sync.Mutex
	next    uint64
	last    map[string]*nats.Msg
	at      map[string]uint64
	answers []string // to the messages that are not the fence's, first to last
	ids     []string // the IDs of these messages
}

const replicatedInfo = `{"created":"2026-11-21T10:00:00Z","config":{"subjects":["payments.>"],"num_replicas":3,"metadata":{"_nats.level":"1"}}}`

func newStandIn(t *testing.T, info string, answers ...string) *standIn {
	t.Helper()
	s := natstest.StartServer(t, natstest.WithoutJetStream)
	in := &standIn{
		scene: &scene{t, connect(t, s), deposed.NewElection(t, "billing"), jetstream.StreamConfig{Name: "PAYMENTS"}},
		info:  info, last: map[string]*nats.Msg{}, at: map[string]uint64{}, answers: answers,
	}
	nc := connect(t, s).Conn()
	for subject, answer := range map[string]func(*nats.Msg) string{
		"$JS.API.STREAM.INFO.PAYMENTS":    func(*nats.Msg) string { return in.info },
		"$JS.API.STREAM.MSG.GET.PAYMENTS": in.get,
		"payments.>":                      in.take,
	} {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer(m))) }); err != nil {
			t.Fatal(err)
		}
	}
	must(t, nc.Flush())
	return in
}

func (in *standIn) get(m *nats.Msg) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var q struct {
		Subject  string `json:"last_by_subj"`
		Sequence uint64 `json:"seq"`
	}
	_ = json.Unmarshal(m.Data, &q)
	for subject, at := range in.at {
		if at == q.Sequence {
			q.Subject = subject
		}
	}
	last := in.last[q.Subject]
	if last == nil {
		return `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`
	}
	header := "NATS/1.0\r\n"
	for k, v := range last.Header {
		header += k + ": " + v[0] + "\r\n"
	}
	encoded, _ := json.Marshal(map[string]any{"message": map[string]any{"subject": q.Subject, "seq": in.at[q.Subject], "hdrs": []byte(header + "\r\n")}})
	return string(encoded)
}

func (in *standIn) take(m *nats.Msg) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	if strings.HasPrefix(m.Subject, fence) {
		return in.keep(m)
	}
	in.ids = append(in.ids, m.Header.Get(jetstream.MsgIDHeader))
	answer := in.answers[0]
	in.answers = in.answers[1:]
	return answer
}

func (in *standIn) keep(m *nats.Msg) string {
	in.next++
	in.last[m.Subject], in.at[m.Subject] = m, in.next
	return fmt.Sprintf(`{"stream":"PAYMENTS","seq":%d}`, in.next)
}

// supersede puts messages of a newer term in the fence.
func (in *standIn) supersede() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for subject, m := range in.last {
		in.keep(&nats.Msg{Subject: subject, Header: nats.Header{fenced.Header: {"9000"}, fenced.FenceHeader: m.Header[fenced.FenceHeader]}})
	}
}

const (
	stored    = `{"stream":"PAYMENTS","seq":100}`
	duplicate = `{"stream":"PAYMENTS","seq":100,"duplicate":true}`
	busy      = `{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`
	sameID    = `{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`
	stale     = `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 0"}}`
	knows     = `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 99"}}`
	full      = `{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}`
	broken    = `{"error":{"code":400,"err_code":10172,"description":"message counter is broken"}}`
	tooLarge  = `{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}`
)

// TestAnswers: a server's answer to a message, the outcome, and how often the message is sent.
func TestAnswers(t *testing.T) {
	t.Parallel()
	lastSeq := nats.Header{jetstream.ExpectedLastSeqHeader: {"7"}}
	for name, c := range map[string]struct {
		deposed bool // a newer term has taken the fence
		header  nats.Header
		answers []string
		want    error
		not     []error
	}{
		"stored":                                 {false, nil, []string{stored}, nil, nil},
		"busy first":                             {false, nil, []string{busy, sameID, stored}, nil, nil},
		"stored by another server":               {false, nil, []string{busy, duplicate}, nil, nil},
		"refused by one that is behind":          {false, nil, []string{stale, duplicate}, nil, nil},
		"deposed":                                {true, nil, []string{knows}, tenure.ErrLost, []error{fenced.ErrUnknown}},
		"deposed, by one that is behind":         {true, nil, []string{stale, knows}, fenced.ErrFenced, []error{fenced.ErrUnknown}},
		"deposed, but stored before":             {true, nil, []string{stale, duplicate}, nil, nil},
		"the outcome stays unknown":              {false, nil, []string{full}, fenced.ErrUnknown, []error{fenced.ErrFenced}},
		"not understood":                         {false, nil, []string{"what"}, fenced.ErrUnknown, nil},
		"nothing acknowledged":                   {false, nil, []string{"{}"}, fenced.ErrUnknown, nil},
		"busy first, and then refused":           {false, nil, []string{busy, tooLarge}, fenced.ErrUnknown, []error{fenced.ErrFenced}},
		"refused for what one server has":        {false, nil, []string{broken}, fenced.ErrUnknown, []error{fenced.ErrFenced}},
		"refused for the caller's last sequence": {false, lastSeq, []string{stale}, fenced.ErrUnknown, []error{fenced.ErrFenced}},
		"deposed, and refused perhaps for the caller's last sequence": {true, lastSeq, []string{knows}, fenced.ErrUnknown, nil},
		"deposed, and the server says so, too":                        {true, lastSeq, []string{knows}, tenure.ErrLost, nil},
		"refused for another reason":                                  {false, nil, []string{tooLarge}, jetstream.ErrStreamMessageExceedsMaximum, []error{fenced.ErrUnknown, fenced.ErrFenced}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newStandIn(t, replicatedInfo, c.answers...)
			p := in.elect("a").open()
			if c.deposed {
				in.supersede()
			}
			m := message("x")
			m.Header = c.header
			ack, err := p.Publish(wait.Context(t), m)
			if !errors.Is(err, c.want) {
				t.Errorf("got the error %v, want %v", err, c.want)
			}
			for _, not := range c.not {
				if errors.Is(err, not) {
					t.Errorf("got the error %v, which is also %v", err, not)
				}
			}
			if err == nil && (ack.Duplicate || ack.Sequence != 100) {
				t.Errorf("acknowledged %+v, although no other client has sent this", ack)
			}
			for i, id := range in.ids {
				if id == "" || id != in.ids[0] {
					t.Errorf("sent %d times, with the ids %q", i+1, in.ids)
				}
			}
			if len(in.answers) > 0 {
				t.Errorf("not sent again: %q", in.answers)
			}
		})
	}
}

// TestOldServer: a server that does not know a condition on another subject would check the
// message's own subject instead.
func TestOldServer(t *testing.T) {
	t.Parallel()
	in := newStandIn(t, `{"created":"2026-11-21T10:00:00Z","config":{"subjects":["payments.>"],"metadata":{}}}`)
	_, err := fenced.Open(wait.Context(t), in.elect("a").term, in.js, "PAYMENTS", fence)
	if !errors.Is(err, fenced.ErrUnfit) || !strings.Contains(err.Error(), "2.11") {
		t.Errorf("with an old server: %v", err)
	}
	if len(in.last) > 0 {
		t.Error("something was published all the same")
	}
}
