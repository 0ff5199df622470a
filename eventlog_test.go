package tenure_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
)

// A log line names the leader, or says that nobody leads. It has no empty leader.
func TestLogSaysThatNobodyLeads(t *testing.T) {
	for field, handler := range map[string]func(*logBuffer) slog.Handler{
		`leader=`:   func(b *logBuffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		`"leader":`: func(b *logBuffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		t.Run(field, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logBuffer
				store := memory.New()
				a := start(t, mustNew(t, store, "a", nil), holdOn)
				standby := mustNew(t, store, "b", func(c *tenure.Config) { c.Logger = slog.New(handler(&log)) })
				standby.SetEligible(false)
				b := start(t, standby, holdOn)
				within(t, 3*lease, a.won, "term")
				time.Sleep(lease)
				_ = a.end(t)
				time.Sleep(lease)
				_ = b.end(t)
				synctest.Wait()
				vacant, led := log.lines("tenure: nobody leads"), log.lines("tenure: leader")
				if len(vacant) == 0 || len(led) != 1 || strings.Contains(strings.Join(vacant, ""), field) || !strings.Contains(led[0], field) {
					t.Errorf("nobody leads:\n%s\na leads:\n%s", strings.Join(vacant, ""), strings.Join(led, ""))
				}
			})
		})
	}
}
