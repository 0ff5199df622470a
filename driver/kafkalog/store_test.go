package kafkalog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestPageHasTheSettings: the command in docs/kafka.md makes the topic that Open makes.
func TestPageHasTheSettings(t *testing.T) {
	page, err := os.ReadFile("../../docs/kafka.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range safely(broker.UsualReplicas) {
		if !strings.Contains(string(page), "--config "+name+"="+value) {
			t.Errorf("docs/kafka.md does not have --config %s=%s", name, value)
		}
	}
}

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

// TestFloorStays: a log that lost its end is shorter, although leaders had terms above its end.
// Another topic starts again.
func TestFloorStays(t *testing.T) {
	var s Store
	one, two := &stretch{at: place{id: [16]byte{1}}}, &stretch{at: place{id: [16]byte{2}}}
	for _, c := range []struct {
		in   *stretch
		end  int64
		want uint64
	}{{one, 10, 10}, {one, 5, 10}, {one, 11, 11}, {two, 3, 3}, {two, 2, 3}} {
		if got := s.raise(c.in, c.end); got != c.want {
			t.Errorf("floor %d at the end %d of topic %d, want %d", got, c.end, c.in.at.id[0], c.want)
		}
	}
}

// TestCreateThatWaitedForAnotherIsResent: of two creates in one process, the second waits until the
// first is read back. If it were sent unchanged, it would state that its writer has read the log up
// to there and found nothing. Then both would be in force.
func TestCreateThatWaitedForAnotherIsResent(t *testing.T) {
	for _, absent := range []driver.Version{never, ""} {
		t.Run("from "+string(absent), func(t *testing.T) {
			st := &stretch{fold: newFold(0, 0, window), epoch: -1, drafts: map[uint64]*draft{}, lost: make(chan struct{})}
			// No post is sent by itself.
			s := &Store{now: st, ctx: t.Context(), senders: maxSending, wire: &wire{timeout: time.Minute}}
			create := func(value string) *draft {
				d, err := s.draft(t.Context(), st, "key", absent, []byte(value))
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			first := create("first")
			s.sends(t, st, 1)
			second := create("second") // the first one is not known yet
			s.lands(st, first)
			if err := <-first.done; err != nil {
				t.Fatalf("the first create: %v", err)
			}
			s.sends(t, st, 0)
			s.lands(st, second)
			if err := <-second.done; !errors.Is(err, driver.ErrConflict) {
				t.Errorf("the second create: %v; want a conflict", err)
			}
			if p := st.fold.state("key"); string(p.value) != "first" {
				t.Errorf("in force is %s", p.value)
			}
		})
	}
}

// sends requires that n posts are ready to be sent now.
func (s *Store) sends(t *testing.T, st *stretch, n int) {
	t.Helper()
	_, b := s.nextBatch()
	if b == nil {
		b = &batch{}
	}
	if len(b.drafts) != n {
		t.Errorf("%d posts are sent at %d; want %d", len(b.drafts), st.fold.next, n)
	}
}

// lands appends a post to the log, if it was sent, and reads it.
func (s *Store) lands(st *stretch, d *draft) {
	if d.batch == nil {
		return
	}
	p := d.post
	p.offset = st.fold.next
	st.settle(p, st.fold.apply(p))
}
