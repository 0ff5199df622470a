package cli

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

func TestLogLines(t *testing.T) {
	short := &tenure.ShortLeaseError{Lease: time.Second, Took: time.Second, Least: 3 * time.Second, Err: errors.New("late")}
	for json, want := range map[bool][]string{
		false: {`msg=seen lease=1m30s cause="`, "--lease"},
		true:  {`"msg":"seen","lease":"1m30s","cause":"`, "--lease"},
	} {
		var out strings.Builder
		log := NewLogger(&out, slog.LevelInfo, json)
		log.Debug("unseen")
		log.Info("seen", "lease", 90*time.Second, "cause", short)
		for _, part := range want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("json %v: no %s in %s", json, part, out.String())
			}
		}
		if strings.Contains(out.String(), "unseen") {
			t.Errorf("json %v: below the level: %s", json, out.String())
		}
	}
}
