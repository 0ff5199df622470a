package fenced

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// FuzzToken: each message that is stamped shows its token, whatever headers it had.
func FuzzToken(f *testing.F) {
	f.Add("7", "billing", uint64(8))
	f.Add("+7", "", uint64(0))
	f.Fuzz(func(t *testing.T, text, fence string, token uint64) {
		m := &nats.Msg{Header: nats.Header{Header: {text}, FenceHeader: {fence}}}
		if _, ok := Token(m.Header); ok && (text == "" || strings.Trim(text, "0123456789") != "") {
			t.Errorf("%q is a token", text)
		}
		if IsFence(m.Header) != (fence != "") {
			t.Errorf("the fence %q is not seen", fence)
		}
		if got, ok := Token(stamped(m, token).Header); !ok || got != token || m.Header.Get(Header) != text {
			t.Errorf("stamped with %d, it shows %d, %v, and the original %q", token, got, ok, m.Header.Get(Header))
		}
	})
}

// FuzzAcknowledged: an acknowledgement always has a sequence.
func FuzzAcknowledged(f *testing.F) {
	f.Add([]byte(`{"stream":"S","seq":7}`))
	f.Add([]byte(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 12"}}`))
	f.Add([]byte(`{"error":{"err_code":10071,"description":"wrong last sequence: 99999999999999999999"}}`))
	f.Add([]byte(`{"error":null,"seq":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ack, err := acknowledged(&nats.Msg{Data: data}, nil)
		if (ack == nil) == (err == nil) || err == nil && ack.Sequence == 0 {
			t.Errorf("%s is read as %+v, %v", data, ack, err)
		}
		if err == nil && !json.Valid(data) {
			t.Errorf("%q acknowledges", data)
		}
	})
}
