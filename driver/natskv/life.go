package natskv

import (
	"github.com/tenure-go/tenure/driver"
)

// life names one life of a bucket: when its stream was made, in microseconds by the server's clock.
//
// The sequence never goes back while a stream lives, and no term is above it. A stream that is deleted and made anew counts
// from 1 again, so floors are counted from its beginning: they then go on where the last life left off, provided that it
// took fewer than a million writes a second and that the clock was not set back. Within one life no clock matters. The sum
// stays below the largest term, 2^53, until the year 2255.
type life uint64

// entry is what a message of this life says.
//
// The message's own sequence is floor enough. Every term was claimed at most one above a floor, so no term is higher than
// the sequence of the message that brought it, and earlier messages of the key have lower sequences than this one. If a
// later one exists by now, the claim fails, since it names this one as the last.
func (l life) entry(sequence uint64, value []byte) driver.Entry {
	return driver.Entry{Value: value, Version: versionOf(sequence), Floor: l.floor(sequence), Era: uint64(l)}
}

func (l life) floor(sequence uint64) uint64 { return uint64(l) + sequence }
