package kafkalog

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestEndOfATransaction: the marker with which a broker ends another program's transaction is not a
// record. But the log ends with it, and has its epoch there. After a fetch with an earlier epoch
// the broker would report again and again that the log diverged.
func TestEndOfATransaction(t *testing.T) {
	data := encodeBatch([]post{{mark: mark{id: 1}, key: "k", first: true}}, "tag", time.Unix(1, 0))
	mark := encodeBatch([]post{{key: "k", first: true}}, "tag", time.Unix(1, 0))
	const firstOffset, leaderEpoch, attributes = 0, 12, 21
	binary.BigEndian.PutUint64(mark[firstOffset:], 1)
	binary.BigEndian.PutUint32(mark[leaderEpoch:], 7)
	binary.BigEndian.PutUint16(mark[attributes:], 1<<5) // control
	binary.BigEndian.PutUint32(mark[beforeChecked-4:], crc32.Checksum(mark[beforeChecked:], castagnoli))
	binary.BigEndian.PutUint32(data[leaderEpoch:], 3)
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = slices.Concat(data, mark)
	h, err := (&wire{topic: "t"}).parse(&p, 0)
	if err != nil || len(h.records) != 1 || h.next != 2 || h.epoch != 7 {
		t.Errorf("%d records, next %d, epoch %d, %v; want 1, 2, 7", len(h.records), h.next, h.epoch, err)
	}
}
