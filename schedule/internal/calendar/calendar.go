// Package calendar computes the instants that a cron expression names in a time zone. The result
// depends on the expression, the zone and the given instant alone, so every member of an election
// computes the same instants. That is why the instants of an interval, as in "@every 10s", are its
// multiples since the Unix epoch, in every zone: they depend on no process's start.
//
// The cron library only answers for a calendar without daylight saving (UTC). This package maps its
// answers to the zone, because the rules for a local time that does not exist, or exists twice,
// decide the identity of ticks:
//
//   - If the hours are listed, as in "30 2 * * *", each local time is one tick. A local time that
//     the clocks skip becomes the instant at which they skip it. Of a local time that occurs twice,
//     the first occurrence counts. So a daily job runs once on each day.
//   - If the hour field begins with an asterisk, as in "*/15 * * * *", the schedule is a period.
//     Every occurrence of a matching local time is a tick, and a skipped time is none. So a job
//     that runs every 15 minutes runs every 15 minutes on each day.
package calendar

import (
	"errors"
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// Calendar is a cron expression in a time zone, or an interval. It is safe for concurrent use.
type Calendar struct {
	spec   string
	zone   *time.Location
	local  cron.Schedule
	period bool
	every  int64 // the interval in seconds; 0: there is none
}

var parser = cron.MustNewParser(
	cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom)

// Parse reads an expression of five fields (minute, hour, day of month, month, day of week), a name
// such as "@daily", or an interval of whole seconds, such as "@every 10s". If both days are
// restricted, a day that matches either one counts, as in other crons. A text with a field of
// seconds or a zone is an error.
func Parse(spec string, zone *time.Location) (*Calendar, error) {
	spec = strings.Join(strings.Fields(spec), " ")
	switch {
	case zone == nil || zone == time.Local:
		return nil, errors.New("the time zone must have a name that is the same on all machines")
	case strings.Contains(spec, "="):
		return nil, fmt.Errorf("schedule %q: the zone is a setting of its own", spec)
	case strings.HasPrefix(spec, "@every"):
		return parseInterval(spec)
	}
	local, err := parser.Parse(spec)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", spec, err)
	}
	c := &Calendar{spec: spec, zone: zone, local: local, period: isPeriod(spec)}
	if c.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("schedule %q: it names no instant", spec)
	}
	return c, nil
}

// parseInterval reads "@every" and a duration. Its text has one form, so "60s" and "1m" are one
// schedule.
func parseInterval(spec string) (*Calendar, error) {
	d, err := time.ParseDuration(strings.TrimPrefix(spec, "@every "))
	if err != nil || d < time.Second || d%time.Second != 0 {
		return nil, fmt.Errorf("schedule %q: an interval is a duration of whole seconds, such as @every 10s", spec)
	}
	return &Calendar{spec: "@every " + d.String(), every: int64(d / time.Second)}, nil
}

func isPeriod(spec string) bool {
	fields := strings.Fields(spec)
	return spec == "@hourly" || len(fields) == 5 && strings.HasPrefix(fields[1], "*")
}

// String returns the expression and the zone, or the interval. Two calendars of the same text have
// the same instants.
func (c *Calendar) String() string {
	if c.every > 0 {
		return c.spec
	}
	return c.spec + " " + c.zone.String()
}

// Next returns the first instant after the given one, or the zero time if none follows within the
// years that the cron library searches.
func (c *Calendar) Next(after time.Time) time.Time {
	switch {
	case c.every > 0:
		return c.nextMultiple(after)
	case c.period:
		return c.nextOccurrence(after)
	}
	for l := c.local.Next(c.wall(after)); !l.IsZero(); l = c.local.Next(l) {
		if t := c.first(l); t.After(after) { // not so in the second pass of an hour
			return t
		}
	}
	return time.Time{}
}

// nextMultiple returns the first multiple of the interval after the given instant, since the Unix
// epoch.
func (c *Calendar) nextMultiple(after time.Time) time.Time {
	s := after.Unix() // rounded down, also before the epoch
	since := s % c.every
	if since < 0 {
		since += c.every
	}
	return time.Unix(s-since+c.every, 0).UTC()
}

// nextOccurrence returns the first instant after the given one at which the local time matches. It
// goes from one change of the zone's offset to the next.
func (c *Calendar) nextOccurrence(after time.Time) time.Time {
	for {
		wall := c.wall(after)
		l := c.local.Next(wall)
		if l.IsZero() {
			return l
		}
		t := after.Add(l.Sub(wall)).UTC()
		_, end := after.In(c.zone).ZoneBounds()
		if end.IsZero() || t.Before(end) {
			return t
		}
		if wall = c.wall(end); c.local.Next(wall.Add(-time.Nanosecond)).Equal(wall) {
			return end.UTC()
		}
		after = end
	}
}

// wall returns the local time that the clocks of the zone show at an instant, as a time in UTC.
func (c *Calendar) wall(t time.Time) time.Time {
	_, offset := t.In(c.zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// first returns the first instant at which the clocks of the zone show l or later.
func (c *Calendar) first(l time.Time) time.Time {
	t := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, c.zone)
	start, end := t.ZoneBounds()
	switch wall := c.wall(t); {
	case wall.After(l): // skipped, and t is past the change
		return start.UTC()
	case wall.Before(l): // skipped, and t is before the change
		return end.UTC()
	case start.IsZero():
		return t.UTC()
	}
	_, before := start.Add(-1).In(c.zone).Zone()
	if earlier := l.Add(-time.Duration(before) * time.Second); earlier.Before(start) {
		return earlier // it occurs twice
	}
	return t.UTC()
}
