package natskv

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/identity"
)

// atSequences checks where the sequences of a bucket begin.
func atSequences(s survey, _ time.Duration) []driver.Finding {
	const setting = "first_seq"
	c, r := s.info.Config, parseRelease(s.server)
	switch {
	case s.info.State.LastSeq < absolute:
		return one(driver.Warning, setting, "the bucket counts its writes from 1, and does so again "+
			"when it is recreated: a candidate that was paused meanwhile may find the sequence that "+
			"it expects on the record of another candidate, and overwrite it", s.renumber())
	case c.FirstSeq > 1 && c.Storage == "file" && r.losesFirst():
		return one(driver.Unsafe, setting, fmt.Sprintf("release %v may lose all records of this "+
			"bucket, and the terms with them, when the server restarts, because the sequences do not "+
			"begin at 1", r), "upgrade all servers to 2.10.28, 2.11.2 or newer")
	case c.FirstSeq > 1 && s.offBy() > identity.ClockSkew:
		return one(driver.Warning, setting, fmt.Sprintf("the program that created the bucket had a "+
			"clock that was %v off the server's, and the sequences begin at its time: tokens may fall "+
			"when the bucket is recreated", s.offBy().Round(time.Second)), "set the clocks; before "+
			"you recreate the bucket, note the highest token, and while the new bucket is "+
			"empty run nats stream purge with --seq above that token")
	}
	return none
}

// offBy returns how far the first sequence is from the creation of the stream.
func (s survey) offBy() time.Duration {
	first, made := s.info.Config.FirstSeq, uint64(s.info.life())
	if made == 0 { // the server does not report it
		return 0
	}
	apart := max(first, made) - min(first, made)
	return time.Duration(min(apart, latest)) * time.Microsecond //nolint:gosec // at most 143 years
}

// renumber returns how an existing bucket gets sequences that do not recur.
func (s survey) renumber() string {
	const all = "which deletes every record of a bucket that is not empty"
	if s.info.State.Messages > 0 {
		return fmt.Sprintf("%s, and then nats stream purge KV_%s --seq with the time of that moment "+
			"in microseconds, %s", s.recreation(""), s.bucket, all)
	}
	next := max(s.info.floor()+1, uint64(max(0, s.info.Now.UnixMicro())))
	return fmt.Sprintf("while no candidate of an older release of Tenure runs: nats stream purge "+
		"KV_%s --seq %d, %s", s.bucket, next, all)
}
