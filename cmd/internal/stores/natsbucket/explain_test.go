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

// Neither passes by itself.
func TestExplain(t *testing.T) {
	place := &Place{Context: "prod", Bucket: "E"}
	for _, c := range []struct {
		why, hint string
		err       error
	}{
		{"two clusters", "one cluster only", fmt.Errorf("read: %w", natskv.ErrTwoClusters)},
		{"no room for a bucket", "nats --context prod account info", &jetstream.APIError{ErrorCode: insufficientResources}},
	} {
		var err error = place.Explain(c.err)
		var f *fault.Error
		if !errors.As(err, &f) || !strings.Contains(f.Hint, c.hint) || fault.Passes(err) {
			t.Errorf("%s: got %v", c.why, err)
		}
	}
}
