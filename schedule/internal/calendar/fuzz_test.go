package calendar

import (
	"strings"
	"testing"
	"time"
)

// FuzzParse: the text of a calendar names the same calendar, and the instants of one grow.
func FuzzParse(f *testing.F) {
	for _, spec := range []string{"*/15 * * * *", "30 2 * * *", "@daily", "@every 10s", "@every  60s", "0 0 29 2 *", "0 0 31 2 *", "CRON_TZ=UTC * * * * *",
		"@every 2562047h47m16s", "0-59/7 1,2 L * MON#2"} {
		f.Add(spec, int64(1_750_000_000))
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Skip(err)
	}
	f.Fuzz(func(t *testing.T, spec string, at int64) {
		c, err := Parse(spec, berlin)
		if err != nil {
			return
		}
		text := strings.TrimSuffix(c.String(), " Europe/Berlin")
		again, err := Parse(text, berlin)
		if err != nil || again.String() != c.String() {
			t.Fatalf("%q is shown as %q, which is read as %v, %v", spec, text, again, err)
		}
		after := time.Unix(at%(1<<33), 0)
		for range 5 {
			next := c.Next(after)
			if same := again.Next(after); !same.Equal(next) {
				t.Fatalf("%q: after %v comes %v, and by its text %v", spec, after, next, same)
			}
			if next.IsZero() {
				return
			}
			if !next.After(after) {
				t.Fatalf("%q: after %v comes %v", spec, after, next)
			}
			after = next
		}
	})
}
