package natskv

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// FuzzConditions: a write from a version that the store accepts states exactly one condition, a
// number, and an acknowledgement always has a version from which the next write can follow.
func FuzzConditions(f *testing.F) {
	f.Add("12", []byte(`{"stream":"KV_E","seq":13}`))
	f.Add(unwritten+"12", []byte(`{"error":{"err_code":10071}}`))
	f.Add(unwritten+"-1", []byte(`{"seq":0}`))
	f.Add("+1", []byte(`{"stream":"KV_E","seq":1,"duplicate":true}`))
	f.Fuzz(func(t *testing.T, version string, answer []byte) {
		b := &bucket{stream: "KV_E"}
		if h, err := b.conditions(driver.Version(version)); err == nil {
			of, ofSubject := h[jetstream.ExpectedLastSeqHeader], h[jetstream.ExpectedLastSubjSeqHeader]
			all := slices.Concat(of, ofSubject)
			if len(all) != 1 || h.Get(jetstream.ExpectedStreamHeader) != b.stream {
				t.Fatalf("%q has the conditions %v", version, h)
			}
			if _, err := strconv.ParseUint(all[0], 10, 64); err != nil || strings.HasPrefix(version, unwritten) != (len(of) == 1) {
				t.Errorf("%q has the condition %v", version, h)
			}
		}
		v, err := b.outcome(answer)
		if (v == "") == (err == nil) {
			t.Fatalf("%s is the version %q, %v", answer, v, err)
		}
		if err == nil {
			if _, err := b.conditions(v); err != nil {
				t.Errorf("no write can follow %q: %v", v, err)
			}
		}
	})
}
