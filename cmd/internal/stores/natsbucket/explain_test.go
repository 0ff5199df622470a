package natsbucket

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
