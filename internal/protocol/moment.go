package protocol

import "time"

// Moment is a wall-clock time, as nanoseconds since 1970: a third of the memory of a time.Time.
// Zero means no time.
type Moment int64

// MomentOf converts a wall-clock time to a Moment.
func MomentOf(wall time.Time) Moment {
	if wall.IsZero() {
		return 0
	}
	return Moment(wall.UnixNano())
}

// Time returns the wall-clock time.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}
