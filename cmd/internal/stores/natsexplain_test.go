package stores_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver/natskv"
)

func TestExplainTwoClusters(t *testing.T) {
	place := stores.InContext("--context", "prod", "E")
	err := place.Explain(fmt.Errorf("read: %w", natskv.ErrTwoClusters))
	var f *fault.Error
	if !errors.As(err, &f) || !strings.Contains(f.Hint, "one cluster only") || fault.Passes(err) {
		t.Errorf("got %v", err)
	}
}
