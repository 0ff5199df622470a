// Package stamp reads the one clock that all processes of a machine share: it never steps, and
// readings of different processes can be compared as long as the machine has not been restarted in
// between.
//
// An election does not use it, since its members are on different machines. Here it serves to check
// an election from outside.
package stamp

import "time"

// Time is a reading in nanoseconds since some moment that is the same for all processes.
type Time int64

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add returns the moment d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }
