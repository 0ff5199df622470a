package natskv

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// outcome is a caller's knowledge of a write.
type outcome string

const (
	applied    outcome = "applied"
	conflicted outcome = "conflict"
	forbidden  outcome = "denied"
	open       outcome = "unknown"
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return applied
	case errors.Is(err, driver.ErrConflict):
		return conflicted
	case errors.Is(err, driver.ErrDenied):
		return forbidden
	}
	return open
}

// TestOutcome lets a program answer instead of the server, because most of these answers cannot be
// provoked.
func TestOutcome(t *testing.T) {
	refusal := func(code string) string {
		return `{"error":{"code":400,"err_code":` + code + `,"description":"told so"},"stream":"KV_B","seq":0}`
	}
	for _, c := range []struct {
		name, answer string
		want         outcome
		why          string
	}{
		{"acknowledged", `{"stream":"KV_B","seq":7}`, applied, "the stream stored it"},
		{"wrong last sequence", refusal("10071"), conflicted, "the version was another"},
		{"wrong last sequence of a replicated stream", refusal("10164"), conflicted, "the version was another, or is about to be"},
		{"duplicate in process", refusal("10158"), open, "an earlier delivery may still be stored"},
		{"last sequence not ready", refusal("10163"), open, "nothing was decided"},
		{"cluster not available", refusal("10008"), open, "a leader that steps down answers so after it has proposed"},
		{"not leader", refusal("10009"), open, "the message may have reached the leader too"},
		{"insufficient resources", refusal("10023"), open, "a leader that steps down answers so"},
		{"store failed", refusal("10077"), open, "a store that fails says little about what it kept"},
		{"value too long", refusal("10054"), open, "an error, but not one that the contract has a name for"},
		{"sealed", refusal("10109"), open, "likewise"},
		{"another stream expected", refusal("10060"), open, "likewise"},
		{"wrong last message id", refusal("10070"), open, "not our condition, so it answers another request"},
		{"another stream", `{"stream":"OTHER","seq":7}`, open, "what another stream stored is not in this one"},
		{"no sequence", `{"stream":"KV_B"}`, open, "there is no version without it"},
		{"duplicate", `{"stream":"KV_B","seq":7,"duplicate":true}`, open, "the sequence is that of another message"},
		{"no JSON", `+OK`, open, "the answer is not from the server"},
		{"nothing", ``, open, "the answer is not from the server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			received := make(chan *nats.Msg, 100)
			_, store := play(t, func(m *nats.Msg) []byte { received <- m; return []byte(c.answer) })
			v, err := store.CompareAndSwap(wait.Context(t), testKey, "3", []byte("v"))
			if got := outcomeOf(err); got != c.want {
				t.Errorf("%s: %v (%v); want %s: %s", c.answer, got, err, c.want, c.why)
			}
			if c.want == applied && v != "7" {
				t.Errorf("version %q", v)
			}
			if n := len(received); n != 1 {
				t.Errorf("%d messages were sent; one attempt per call", n)
			}
		})
	}
}

// TestConditions checks the headers that are sent: they are the compare-and-swap.
func TestConditions(t *testing.T) {
	received := make(chan *nats.Msg, 1)
	_, store := play(t, func(m *nats.Msg) []byte { received <- m; return []byte(`{"stream":"KV_B","seq":7}`) })
	for _, c := range []struct {
		prev        driver.Version
		header      string
		value       string
		otherHeader string
		why         string
	}{
		{"", jetstream.ExpectedLastSubjSeqHeader, "0", jetstream.ExpectedLastSeqHeader, "the key has no message"},
		{"42", jetstream.ExpectedLastSubjSeqHeader, "42", jetstream.ExpectedLastSeqHeader, "the key's last message is this one"},
		{unwritten + "0", jetstream.ExpectedLastSeqHeader, "0", jetstream.ExpectedLastSubjSeqHeader, "the stream has no message"},
		{unwritten + "1795303312068703", jetstream.ExpectedLastSeqHeader, "1795303312068703", jetstream.ExpectedLastSubjSeqHeader,
			"nor has one that begins at a time"},
	} {
		if _, err := store.CompareAndSwap(wait.Context(t), testKey, c.prev, []byte("v")); err != nil {
			t.Fatal(err)
		}
		h := (<-received).Header
		if got := h.Get(c.header); got != c.value || h.Get(c.otherHeader) != "" {
			t.Errorf("from version %q: headers %v; want %s: %s, as %s", c.prev, h, c.header, c.value, c.why)
		}
		if h.Get(jetstream.ExpectedStreamHeader) != "KV_B" || h.Get(jetstream.MsgIDHeader) != "" {
			t.Errorf("from version %q: headers %v; want the stream's name and no message id", c.prev, h)
		}
	}
}

// TestRefusalsNameTheirRemedy: one code stands for all limits of a stream, so its text decides.
func TestRefusalsNameTheirRemedy(t *testing.T) {
	b := &bucket{name: "B", stream: "KV_B"}
	for _, c := range []struct{ code, text, option string }{
		{"10077", "maximum messages exceeded", "--max-msgs=-1"},
		{"10077", "maximum bytes exceeded", "--max-bytes=-1"},
		{"10054", "message size exceeds maximum allowed", "--max-msg-size=-1"},
	} {
		_, err := b.outcome([]byte(`{"error":{"code":400,"err_code":` + c.code + `,"description":"` + c.text + `"},"seq":0}`))
		if err == nil || !strings.HasSuffix(err.Error(), "nats stream edit KV_B "+c.option) {
			t.Errorf("%s: %v, want the remedy %s", c.text, err, c.option)
		}
	}
}
