package fenced

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// TestSubjectFilterCoversTheFence: which filters of a stream include the subjects of the fence
// "a.f".
func TestSubjectFilterCoversTheFence(t *testing.T) {
	for filter, want := range map[string]bool{
		">": true, "a.>": true, "a.f.>": true, "a.f.*.>": true, "a.f.*.*": true, "*.f.*.*": true,
		"a": false, "a.f": false, "a.*": false, "a.f.*": false, "a.f.*.*.*": false, "a.f.*.*.>": false, "b.>": false, "a.g.>": false,
	} {
		if got := listens(filter, "a.f"); got != want {
			t.Errorf("%s: %v", filter, got)
		}
	}
}

// TestMirrorIsUnfit: module natstest has the other reasons, on a server.
func TestMirrorIsUnfit(t *testing.T) {
	s := stream{}
	if err := json.Unmarshal([]byte(`{"config":{"mirror":{},"metadata":{"_nats.level":"1"}}}`), &s); err != nil {
		t.Fatal(err)
	}
	if err := s.fit("a.f"); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "mirror") {
		t.Errorf("got the error %v", err)
	}
}

// TestAcknowledged: which answers mean that a message is not stored, and which leave the outcome
// unknown.
func TestAcknowledged(t *testing.T) {
	moved := new(movedError)
	for name, c := range map[string]struct {
		answer string
		err    error
		want   error // ErrUnknown, errBusy, moved, or another refusal
	}{
		"not sent":          {err: errOffline, want: errOffline},
		"no responder":      {err: nats.ErrNoResponders, want: nats.ErrNoResponders},
		"no right":          {err: driver.ErrDenied, want: driver.ErrDenied},
		"no answer":         {err: nats.ErrTimeout, want: ErrUnknown},
		"connection lost":   {err: errLost, want: ErrUnknown},
		"not understood":    {answer: "what", want: ErrUnknown},
		"nothing":           {answer: "{}", want: ErrUnknown},
		"of the 500s":       {answer: `{"error":{"code":503,"err_code":10077}}`, want: ErrUnknown},
		"another condition": {answer: `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 7"}}`, want: moved},
		"on its way":        {answer: `{"error":{"code":400,"err_code":10164}}`, want: errBusy},
		"same id":           {answer: `{"error":{"code":409,"err_code":10158}}`, want: errBusy},
		"refused":           {answer: `{"error":{"code":400,"err_code":10054}}`, want: jetstream.ErrStreamMessageExceedsMaximum},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := acknowledged(&nats.Msg{Data: []byte(c.answer)}, c.err)
			if errors.Is(c.want, moved) {
				if !errors.As(err, &moved) || moved.last != 7 {
					t.Errorf("got the error %v", err)
				}
				return
			}
			if !errors.Is(err, c.want) || errors.Is(err, ErrUnknown) != errors.Is(c.want, ErrUnknown) {
				t.Errorf("got the error %v, want %v", err, c.want)
			}
		})
	}
}

// TestCheckNames: an invalid name is refused without a request.
func TestCheckNames(t *testing.T) {
	for names, ok := range map[[2]string]bool{
		{"S", "a"}: true, {"S", "a.b"}: true,
		{"", "a"}: false, {"A.B", "a"}: false, {"S", ""}: false, {"S", "a.>"}: false, {"S", "a..b"}: false, {"S", ".a"}: false, {"S", `a"b`}: false,
	} {
		if err := checkNames(names[0], names[1]); (err == nil) != ok {
			t.Errorf("%q: %v", names, err)
		}
	}
}
