// Package stamp reads the one clock that all processes of a machine share: it never steps, and
// readings of different processes can be compared as long as the machine has not been restarted in
// between.
//
// No election does that, since its members are on different machines. Here it is a witness that
// stands outside of the election and checks it.
package stamp

import "time"

// Time is a reading in nanoseconds since some moment that is the same for all processes.
type Time int64

// Sub is the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add is the moment d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }
