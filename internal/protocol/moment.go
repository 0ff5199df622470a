package protocol

import "time"

// Moment is a time of day in a third of a time.Time's memory: nanoseconds since 1970. Zero means no
// time.
type Moment int64

// MomentOf converts a time of day to a Moment.
func MomentOf(wall time.Time) Moment {
	if wall.IsZero() {
		return 0
	}
	return Moment(wall.UnixNano())
}

// Time returns the time of day.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}
