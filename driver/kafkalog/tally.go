package kafkalog

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kgo"
)

// tally counts the records that were read of a log, from where reading began. Only Inspect uses it.
type tally struct {
	posts, foreign int64
	last           int64 // the offset of the last foreign one
	later          bool  // some are in a format that is not known here
	bytes          int64
	since, until   time.Time // by the clocks of brokers or writers
}

// aroundRecord is about the size of a record's parts besides its content, in a batch of few.
const aroundRecord = 40

func (t *tally) count(r *kgo.Record, ours bool) {
	if t.posts+t.foreign == 0 {
		t.since = r.Timestamp
	}
	t.until = r.Timestamp
	t.bytes += int64(aroundRecord + len(r.Key) + len(r.Value))
	for _, h := range r.Headers {
		t.bytes += int64(len(h.Key) + len(h.Value))
	}
	if ours {
		t.posts++
		return
	}
	t.foreign++
	t.last = r.Offset
}

func (s *Store) tally() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return tally{}
	}
	return s.now.seen
}

// refuseForeign keeps elections out of a topic that is in use for something else. One record of an
// election among those that were read makes it a topic of elections; then foreign records are a
// nuisance that Inspect reports.
func (t tally) refuseForeign() error {
	if t.later {
		return errors.New("it holds records of a later release of Tenure, which has other rules for valid records: run the same release in all candidates and " +
			"observers of the topic, or give this process another topic")
	}
	if t.foreign == 0 || t.posts > 0 {
		return nil
	}
	return fmt.Errorf("it holds %d records and none of an election: it is in use for something else, or a copy of another topic; "+
		"choose a topic for elections alone, or remove them with kafka-delete-records.sh", t.foreign)
}

// atForeign returns the findings about foreign records.
func (v survey) atForeign() []driver.Finding {
	if v.seen.foreign == 0 {
		return nil
	}
	return []driver.Finding{{
		Severity: driver.Warning, Setting: "records",
		Problem: fmt.Sprintf("%d of the %d records that were read are of no election, the last one at offset %d: they push out "+
			"those of elections, and more than %d of them at once make writes fail", v.seen.foreign, v.seen.foreign+v.seen.posts,
			v.seen.last, window),
		Remedy: fmt.Sprintf("look who writes them (kafka-console-consumer.sh --topic %s --partition 0 --offset %d), and give the right "+
			"to write to candidates alone", v.topic, v.seen.last),
	}}
}

const (
	// enough is the number of records that show how fast they come.
	enough = 1000
	// Leases in the time after which a record is removed.
	tooFewLeases = 2
	fewLeases    = 10
)

// atPace compares the lease with how long a record stays in the log, at the mean pace since reading
// began: the record of a leader must not be removed while it leads. A store that has read for long
// does not notice a burst; one that opens the topic then does.
func (v survey) atPace() []driver.Finding {
	retention, ok := v.number("retention.bytes")
	if !ok || retention < 0 || v.seen.posts+v.seen.foreign < enough {
		return nil
	}
	stays := time.Duration(float64(v.seen.until.Sub(v.seen.since)) * float64(retention) / float64(v.seen.bytes))
	severity := driver.Warning
	switch {
	case stays >= fewLeases*v.lease:
		return nil
	case stays < tooFewLeases*v.lease:
		severity = driver.Unsafe
	}
	return []driver.Finding{{
		Severity: severity, Setting: "retention.bytes",
		Problem: fmt.Sprintf("at the present rate of writes a record is removed about %v after it was written, which is less than %d leases of %v: the "+
			"record of a leader may be removed while it leads", stays.Round(time.Second), fewLeases, v.lease),
		Remedy: fmt.Sprintf("more retention.bytes, fewer elections in topic %s, or a shorter lease", v.topic),
	}}
}
