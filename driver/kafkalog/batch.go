package kafkalog

import (
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Parts of a record batch in the present format.
const (
	batchMagic    = 2
	beforeLength  = 12 // first offset and length
	beforeChecked = 21 // up to and with the checksum
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeBatch makes one record batch of posts, uncompressed, without a producer that the broker
// would know. So the broker never takes one for the repetition of another; the rule of the log
// does.
func encodeBatch(posts []post, tag string, now time.Time) []byte {
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1,
		Magic:                batchMagic,
		LastOffsetDelta:      int32(len(posts) - 1),
		FirstTimestamp:       now.UnixMilli(),
		MaxTimestamp:         now.UnixMilli(),
		ProducerID:           -1,
		ProducerEpoch:        -1,
		FirstSequence:        -1,
		NumRecords:           int32(len(posts)),
	}
	for i, p := range posts {
		b.Records = append(b.Records, encodeRecord(p, tag, int32(i))...)
	}
	raw := b.AppendTo(nil)
	b.Length = int32(len(raw) - beforeLength)
	raw = b.AppendTo(nil)
	b.CRC = int32(crc32.Checksum(raw[beforeChecked:], castagnoli))
	return b.AppendTo(nil)
}

// encodeRecord makes one record of a batch. Its length counts the bytes after it.
func encodeRecord(p post, tag string, at int32) []byte {
	r := kmsg.Record{
		OffsetDelta: at,
		Value:       p.value,
		Headers:     []kmsg.Header{{Key: headerKey, Value: p.encode(tag)}},
	}
	const lengthOfZero = 1
	r.Length = int32(len(r.AppendTo(nil)) - lengthOfZero)
	return r.AppendTo(nil)
}
