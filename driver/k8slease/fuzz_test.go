package k8slease

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// FuzzLease: each Lease that is read can be written, with any value, and shows that value then. All
// fields of others survive.
func FuzzLease(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"billing","uid":"u","resourceVersion":"12","labels":{"a":"b"},"annotations":{"x":"y"}},`+
		`"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:05.000006Z","leaseTransitions":3}}`), []byte("{}"))
	f.Add([]byte(`{"metadata":{"resourceVersion":"1"}}`), []byte("base64:\xff"))
	f.Add([]byte(`{"metadata":{"uid":"u","resourceVersion":"1","annotations":null},"spec":{"acquireTime":"9999-12-31T23:59:59-01:00"}}`),
		[]byte(`{"leaderID":"a","nonce":"n","leaseMillis":1000}`))
	f.Fuzz(func(t *testing.T, text, value []byte) {
		l := &lease{}
		if json.Unmarshal(text, l) != nil {
			return
		}
		if l.revision == 0 {
			t.Fatal("it has no revision")
		}
		_ = l.value()
		next := l.with("billing", value, time.Unix(1_800_000_000, 0))
		body, err := json.Marshal(next)
		if err != nil {
			t.Fatalf("%s is read and not written: %v", text, err)
		}
		back := &lease{}
		if err := json.Unmarshal(body, back); err != nil && l.uid != "" {
			t.Fatalf("%s is written as %s, and not read: %v", text, body, err)
		}
		if l.uid == "" {
			return // it is a request to create the Lease, without a revision
		}
		if got := back.value(); !bytes.Equal(got, value) {
			t.Errorf("the value %q comes back as %q in %s", value, got, body)
		}
		if back.uid != l.uid || back.revision != l.revision || len(back.metadata) != len(l.metadata) {
			t.Errorf("%s comes back as %s", text, body)
		}
	})
}

// FuzzValue: each value survives the annotation, which is UTF-8.
func FuzzValue(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte("base64:e30="))
	f.Add([]byte{0xff, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		text := encodeValue(value)
		if back, err := decodeValue(text); err != nil || !bytes.Equal(back, value) {
			t.Errorf("%q is written as %q, and read as %q, %v", value, text, back, err)
		}
	})
}
