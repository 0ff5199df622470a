package calendar

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func parse(t testing.TB, spec, in string) *Calendar {
	t.Helper()
	c, err := Parse(spec, zone(t, in))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDaylightSaving shows the rules at both changes of the clocks in three zones. One of them
// changes by half an hour.
func TestDaylightSaving(t *testing.T) {
	for _, c := range []struct{ reason, spec, zone, from, want string }{
		{"a skipped time becomes the instant of the change", "30 2 * * *", "Europe/Berlin",
			"2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"two skipped times become one tick", "0,30 2 * * *", "Europe/Berlin",
			"2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"a skipped time and the instant of the change are one tick", "0 2,3 * * *", "Europe/Berlin",
			"2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"of two occurrences the first counts", "30 2 * * *", "Europe/Berlin",
			"2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"between two occurrences there is no tick", "30 2 * * *", "Europe/Berlin",
			"2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00"},
		{"a period goes on through the change", "*/30 * * * *", "Europe/Berlin",
			"2026-03-29T01:15:00+01:00", "2026-03-29T01:30:00+01:00 2026-03-29T03:00:00+02:00 2026-03-29T03:30:00+02:00"},
		{"a period has both occurrences", "30 * * * *", "Europe/Berlin",
			"2026-10-25T01:45:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 2026-10-25T03:30:00+01:00"},
		{"a skipped time becomes the instant of the change", "30 2 * * *", "America/New_York",
			"2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"of two occurrences the first counts", "30 1 * * *", "America/New_York",
			"2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00"},
		{"a period has both occurrences", "0 * * * *", "America/New_York",
			"2026-11-01T00:30:00-04:00", "2026-11-01T01:00:00-04:00 2026-11-01T01:00:00-05:00 2026-11-01T02:00:00-05:00"},
		{"half an hour is skipped", "15 2 * * *", "Australia/Lord_Howe",
			"2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"half an hour occurs twice", "45 1 * * *", "Australia/Lord_Howe",
			"2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
		{"the period of the half hour that occurs twice", "*/15 * * * *", "Australia/Lord_Howe",
			"2026-04-05T01:40:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-05T01:30:00+10:30 2026-04-05T01:45:00+10:30 2026-04-05T02:00:00+10:30"},
		{"a period of hours with a time that is skipped", "15 */2 * * *", "Australia/Lord_Howe",
			"2026-10-04T00:30:00+10:30", "2026-10-04T04:15:00+11:00"},
		{"a name is a schedule", "@daily", "Europe/Berlin",
			"2026-03-28T12:00:00+01:00", "2026-03-29T00:00:00+01:00 2026-03-30T00:00:00+02:00"},
		{"@hourly is a period", "@hourly", "Europe/Berlin",
			"2026-10-25T02:10:00+02:00", "2026-10-25T02:00:00+01:00 2026-10-25T03:00:00+01:00"},
		{"either day matches", "0 0 13 * 5", "Europe/Berlin",
			"2026-07-01T00:00:00+02:00", "2026-07-03T00:00:00+02:00 2026-07-10T00:00:00+02:00 2026-07-13T00:00:00+02:00"},
	} {
		t.Run(c.zone+" "+c.reason, func(t *testing.T) {
			cal := parse(t, c.spec, c.zone)
			at, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range strings.Fields(c.want) {
				at = cal.Next(at)
				got = append(got, at.In(zone(t, c.zone)).Format(time.RFC3339))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%s: got %s, want %s", c.spec, s, c.want)
			}
		})
	}
}

// TestEveryDayHasItsTick: over ten years, a schedule with listed hours has one tick for each local
// day, and a period has as many as the hours that pass.
func TestEveryDayHasItsTick(t *testing.T) {
	for _, in := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC"} {
		start := time.Date(2014, 6, 1, 12, 0, 0, 0, zone(t, in))
		end := time.Date(2024, 6, 1, 12, 0, 0, 0, zone(t, in))
		days := map[string]int{}
		for _, h := range []int{0, 1, 2, 3, 23} {
			clear(days)
			cal := parse(t, fmt.Sprintf("20 %d * * *", h), in)
			for at := cal.Next(start); at.Before(end); at = cal.Next(at) {
				days[at.In(zone(t, in)).Format(time.DateOnly)]++
			}
			if want := 3653; len(days) != want {
				t.Errorf("%s at %d: %d days have a tick, not %d", in, h, len(days), want)
			}
			for day, n := range days {
				if n != 1 {
					t.Errorf("%s at %d: %s has %d ticks", in, h, day, n)
				}
			}
		}
		cal, n := parse(t, "*/30 * * * *", in), 0
		for at := cal.Next(start); at.Before(end); at = cal.Next(at) {
			n++
		}
		if want := int(2 * end.Sub(start).Hours()); n < want-1 || n > want+1 {
			t.Errorf("%s: %d ticks in ten years, not about %d", in, n, want)
		}
	}
}

// TestNextDoesNotDependOnTheStart: members begin to count at different instants, and find the same
// ticks.
func TestNextDoesNotDependOnTheStart(t *testing.T) {
	for _, in := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		for _, spec := range []string{"*/7 * * * *", "0,29,30,59 1-3 * * *", "15 */2 * * *", "* 2 * * *"} {
			cal := parse(t, spec, in)
			for _, month := range []time.Month{3, 4, 10, 11} {
				at := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
				next := cal.Next(at)
				for ; at.Month() == month; at = at.Add(181 * time.Second) {
					if !at.Before(next) {
						next = cal.Next(next)
					}
					if got := cal.Next(at); !got.Equal(next) && at.Before(next) {
						t.Fatalf("%s %s: after %v comes %v, and from an earlier start %v", spec, in, at, got, next)
					}
				}
			}
		}
	}
}

// TestInterval: the instants of an interval do not depend on a zone, on a change of its clocks, or
// on when a member begins to count.
func TestInterval(t *testing.T) {
	for _, c := range []struct{ reason, spec, plan, from, want string }{
		{"a second", "@every 1s", "@every 1s", "2026-03-29T00:59:59.5Z", "2026-03-29T01:00:00Z 2026-03-29T01:00:01Z"},
		{"an instant of its own is not after itself", "@every 10s", "@every 10s", "2026-03-29T01:00:00Z", "2026-03-29T01:00:10Z 2026-03-29T01:00:20Z"},
		{"a duration has one text", "@every  90m", "@every 1h30m0s", "1970-01-01T00:00:00Z", "1970-01-01T01:30:00Z 1970-01-01T03:00:00Z"},
		{"an interval that divides no day", "@every 7h", "@every 7h0m0s", "1970-01-01T20:00:00Z", "1970-01-01T21:00:00Z 1970-01-02T04:00:00Z"},
		{"before the epoch", "@every 7s", "@every 7s", "1969-12-31T23:59:50.5Z", "1969-12-31T23:59:53Z 1970-01-01T00:00:00Z"},
	} {
		for _, in := range []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe"} {
			cal := parse(t, c.spec, in)
			if cal.String() != c.plan {
				t.Errorf("%s: the text is %q", c.reason, cal)
			}
			at, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range strings.Fields(c.want) {
				at = cal.Next(at.In(zone(t, in)))
				got = append(got, at.Format(time.RFC3339))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%s in %s: got %s, want %s", c.reason, in, s, c.want)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		reason, spec string
		zone         *time.Location
	}{
		{"no fields", "", time.UTC},
		{"four fields", "0 3 * *", time.UTC},
		{"seconds", "0 0 3 * * *", time.UTC},
		{"out of range", "60 3 * * *", time.UTC},
		{"an interval without a duration", "@every", time.UTC},
		{"an interval that is no duration", "@every day", time.UTC},
		{"an interval of less than a second", "@every 500ms", time.UTC},
		{"an interval that is not whole seconds", "@every 1.5s", time.UTC},
		{"no interval", "@every 0s", time.UTC},
		{"a negative interval", "@every -10s", time.UTC},
		{"an interval without a space", "@every10s", time.UTC},
		{"a zone within the text", "TZ=UTC 0 3 * * *", time.UTC},
		{"a zone alone", "TZ=UTC", time.UTC},
		{"a day that no month has", "0 0 31 2 *", time.UTC},
		{"a local zone differs between machines", "0 3 * * *", time.Local},
		{"no zone", "0 3 * * *", nil},
		{"reboot", "@reboot", time.UTC},
	} {
		if _, err := Parse(c.spec, c.zone); err == nil {
			t.Errorf("%s: %q is no error", c.reason, c.spec)
		}
	}
}
