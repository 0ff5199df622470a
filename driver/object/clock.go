package object

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Latest is the driver.Entry.Ceiling of stores with this floor. It is in the year 2109, in
// milliseconds: no candidate takes a term above it, also where a server's clock is far behind that
// of others, such as at 1970.
const Latest = 1 << 42

// Floor returns the server's clock in milliseconds, 0 if it is not known. The Date of an answer is
// cut off to whole seconds. That does no harm: of two Dates a second apart, the later is above the
// earlier by 1,000, far more terms than begin in a second.
func Floor(date time.Time) uint64 {
	if date.IsZero() {
		return 0
	}
	return uint64(max(0, date.UnixMilli()))
}

// AtClock reports a floor that is not known, and a clock of this machine that is more than 5 min
// away from the server's. It compares in the middle of the second that the server reported. The
// effect says what such a difference leads to.
func AtClock(floor uint64, now time.Time, effect string) []driver.Finding {
	if floor == 0 {
		return []driver.Finding{{
			Severity: driver.Warning, Setting: "Date",
			Problem: "answers do not tell the server's time: where a record was deleted, a new leader may get a lower term than an old one had",
			Remedy:  "let the Date header pass in all proxies",
		}}
	}
	off := now.Sub(time.UnixMilli(int64(floor)).Add(500 * time.Millisecond)).Abs()
	if off <= 5*time.Minute {
		return nil
	}
	return []driver.Finding{{
		Severity: driver.Advice, Setting: "clock",
		Problem: fmt.Sprintf("this machine's clock and the server's are %v apart: %s", off.Round(time.Second), effect),
		Remedy:  "set the clock that is wrong, with chronyc makestep or the like",
	}}
}

// Cleaning returns a context for the removal of the objects of an inspection: its own, or a second
// more if that has ended.
func Cleaning(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), time.Second)
}
