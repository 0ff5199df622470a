package natsbucket

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver/natskv"
)

func TestExplainTwoClusters(t *testing.T) {
	place := &Place{Context: "prod", Bucket: "E"}
	var err error = place.Explain(fmt.Errorf("read: %w", natskv.ErrTwoClusters))
	var f *fault.Error
	if !errors.As(err, &f) || !strings.Contains(f.Hint, "one cluster only") || fault.Passes(err) {
		t.Errorf("got %v", err)
	}
}

// The server has one error code for each full stream, and a text that names the limit.
func TestFullBucketNamesItsLimit(t *testing.T) {
	place := &Place{Context: "prod", Bucket: "B"}
	for _, c := range []struct {
		code       jetstream.ErrorCode
		text, hint string
	}{
		{10077, "maximum messages exceeded", "--max-msgs=-1"},
		{10077, "maximum bytes exceeded", "--max-bytes=-1"},
		{10077, "maximum messages per subject exceeded", "--max-bytes=-1"},
		{10054, "message size exceeds maximum allowed", "--max-msg-size=-1"},
	} {
		var err error = place.Explain(&jetstream.APIError{ErrorCode: c.code, Description: c.text})
		var f *fault.Error
		if !errors.As(err, &f) || !strings.Contains(f.Hint, "stream edit KV_B "+c.hint) {
			t.Errorf("of %q it says %v; the hint is not %s", c.text, err, c.hint)
		}
	}
}
