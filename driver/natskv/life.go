package natskv

import (
	"github.com/tenure-go/tenure/driver"
)

// absolute is the least sequence that is a floor by itself. A stream whose sequences begin at the
// time in microseconds has exceeded it since 2005. A stream that counts from 1 would need 35 years
// at a million writes a second.
const absolute uint64 = 1 << 50

// life names one life of a bucket: when its stream was created, in microseconds by the server's
// clock.
//
// The sequence never goes back while a stream lives, and no term is above the floor of the sequence
// that brought it. A stream of Create begins at the present time in microseconds: its sequences are
// floors by themselves, and none of them recurs in another life. A stream that counts from 1 begins
// there again when it is recreated, so its floors are counted from its creation. Either way the
// floors of a later life are above those of an earlier one, if that took fewer than a million
// writes a second and no clock was set back. Within one life no clock matters. Both kinds stay
// below the largest term, 2^53, until the year 2255.
//
// The sequence alone distinguishes the two kinds. No clocks are compared, and the configuration is
// not used: key-value clients drop the first sequence from it when they update a bucket.
type life uint64

// entry turns a message of this life into an entry.
//
// The message's own sequence suffices as the floor. Every term was claimed at most one above a
// floor, so no term is higher than the floor of the message that brought it, and earlier messages
// of the key have lower sequences than this one. If a later one exists by now, the claim fails,
// since it names this one as the last.
//
// Credible terms can be above it all the same: a handle that does not describe its stream sees the
// bare sequence, and older releases count twice the time. None of them is above the ceiling.
func (l life) entry(sequence uint64, value []byte) driver.Entry {
	return driver.Entry{
		Value:   value,
		Version: versionOf(sequence),
		Floor:   l.floor(sequence),
		Ceiling: latest,
		Era:     uint64(l),
	}
}

func (l life) floor(sequence uint64) uint64 {
	if sequence >= absolute {
		return sequence
	}
	return uint64(l) + sequence
}

// sequence returns the sequence with this floor in a stream that ends at last, 0 if there is none.
func (l life) sequence(floor, last uint64) uint64 {
	sequence := floor
	if last < absolute {
		sequence = max(floor, uint64(l)) - uint64(l)
	}
	if sequence > last {
		return 0
	}
	return sequence
}
