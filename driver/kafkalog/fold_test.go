package kafkalog

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// world is a log with writers that are honest and slow. Each writes the true result of its reading,
// at a position that it reached some time ago. Its post is appended late, twice, out of order or
// never.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	window  int64
	keys    int
	log     []*post // nil: a foreign record
	start   int64   // the first offset that retention has left
	full    *fold   // has read everything from the beginning
	writers []*fold
	flying  []post
	ids     uint64
	verdict map[int64]bool // of the full reader, by offset
	tally   struct{ effective, refused, first, late int }
}

func newWorld(t *testing.T, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{t: t, rng: rng, window: int64(3 + rng.IntN(9)), keys: 1 + rng.IntN(6), verdict: map[int64]bool{}}
	w.full = newFold(0, 0, w.window)
	for range 2 + rng.IntN(4) {
		w.writers = append(w.writers, newFold(0, 0, w.window))
	}
	return w
}

// read lets a reader continue to an offset.
func (w *world) read(f *fold, until int64) {
	for f.next < until {
		at := f.next
		if p := w.log[at]; p == nil {
			f.skip(at + 1)
		} else if effective := f.apply(*p); effective != w.verdict[at] && f.knew(*p) {
			w.t.Fatalf("a reader from %d finds %v in force: %v, the full reader: %v", f.from, p, effective, w.verdict[at])
		}
	}
}

// knew reports whether the reader must decide correctly about a post: it has read at least as much
// as the post's writer.
func (f *fold) knew(p post) bool { return f.from == 0 || p.offset >= f.from+2*f.window }

func (w *world) land(p *post) {
	w.log = append(w.log, p)
	at := int64(len(w.log) - 1)
	if p == nil {
		w.full.skip(at + 1)
		return
	}
	own := *p
	own.offset = at
	w.log[at] = &own
	w.verdict[at] = w.full.apply(own)
	switch {
	case w.verdict[at]:
		w.tally.effective++
	default:
		w.tally.refused++
	}
	if at-own.at > w.window {
		w.tally.late++
		if w.verdict[at] {
			w.t.Fatalf("%v is in force though its writer was %d behind", own, at-own.at)
		}
	}
}

func (w *world) write(f *fold) {
	p := post{key: fmt.Sprint("k", w.rng.IntN(w.keys)), at: f.next, base: f.base(), first: true}
	if s := f.state(p.key); s != nil {
		p.prev, p.first = s.mark, false
	} else {
		w.tally.first++
	}
	w.ids++
	p.id = w.ids
	w.flying = append(w.flying, p)
}

func (w *world) step(retention bool) {
	f := w.writers[w.rng.IntN(len(w.writers))]
	switch n := w.rng.IntN(20); {
	case n < 3:
		w.read(f, f.next+w.rng.Int64N(int64(len(w.log))-f.next+1))
	case n < 8:
		w.read(f, int64(len(w.log)))
	case n < 13:
		w.write(f)
	case n == 13:
		w.land(nil)
	case n == 14 && retention:
		w.trim(f)
	case len(w.flying) > 0:
		w.arrive()
	}
}

// arrive appends a post that is in flight, usually the last one sent.
func (w *world) arrive() {
	i := len(w.flying) - 1
	if w.rng.IntN(3) == 0 {
		i = w.rng.IntN(len(w.flying))
	}
	p := w.flying[i]
	if w.rng.IntN(5) > 0 { // otherwise it arrives once more
		w.flying = append(w.flying[:i], w.flying[i+1:]...)
	}
	if w.rng.IntN(10) > 0 { // otherwise it is lost
		w.land(&p)
	}
}

// trim removes the head of the log and notifies some writers. A new writer without memory replaces
// one of them.
func (w *world) trim(f *fold) {
	if keep := int64(len(w.log)) - 4*w.window; keep > w.start {
		w.start += w.rng.Int64N(keep-w.start) + 1
	}
	w.read(f, int64(len(w.log)))
	f.trim(w.start)
	w.writers[w.rng.IntN(len(w.writers))] = w.fresh()
}

// fresh returns a reader that begins as stores do.
func (w *world) fresh() *fold {
	end, from := int64(len(w.log)), w.start
	for i := max(w.start, end-peek); i < end; i++ {
		if p := w.log[i]; p != nil {
			from = entranceBy(*p, w.start, w.window)
		}
	}
	f := newFold(from, w.start, w.window)
	w.read(f, end)
	return f
}

// TestFreshReaderEqualsFullReplay: a reader that begins near the end has the same state of every
// key as a reader that read everything.
func TestFreshReaderEqualsFullReplay(t *testing.T) {
	partial := 0
	for seed := range uint64(*histories) {
		w := newWorld(t, seed)
		for i := range 400 {
			w.step(false)
			if i%20 == 0 {
				f := w.fresh()
				if f.from > 0 {
					partial++
				}
				w.same(f, func(p *post) bool { return true })
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, window %d", seed, w.window)
		}
	}
	if partial < 1000 {
		t.Errorf("only %d readers began after the first record", partial)
	}
}

// TestRetentionMakesKeysAbsent: where the head of the log is gone, a reader has the full reader's
// state of a key, or none. It has none only if the post was near the head.
func TestRetentionMakesKeysAbsent(t *testing.T) {
	gone, known := 0, 0
	for seed := range uint64(*histories) {
		w := newWorld(t, seed)
		for i := range 1500 {
			w.step(true)
			if i%20 > 0 {
				continue
			}
			w.same(w.fresh(), func(p *post) bool {
				gone++
				return p.offset >= w.start+2*w.window
			})
			if w.start > 0 && w.full.held.Len() > 0 {
				known++
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, window %d", seed, w.window)
		}
	}
	if gone < 100 || known < 1000 {
		t.Errorf("%d posts gone, %d readers of a log without a head", gone, known)
	}
}

// same compares a reader with the full one. must reports whether the reader has to know a post in
// force.
func (w *world) same(f *fold, must func(*post) bool) {
	w.t.Helper()
	for k := range w.keys {
		key := fmt.Sprint("k", k)
		want, got := w.full.state(key), f.state(key)
		switch {
		case want == nil && got != nil, want != nil && got != nil && want.mark != got.mark:
			w.t.Errorf("reader from %d of %d..%d: %s is %v, should be %v", f.from, w.start, f.next, key, got, want)
		case want != nil && got == nil && must(want):
			w.t.Errorf("reader from %d of %d..%d: %s is not known, should be %v", f.from, w.start, f.next, key, want)
		}
		if f.pristine(key) && want != nil {
			w.t.Errorf("%s is pristine to one reader and %v to another", key, want)
		}
	}
}

// TestOneSuccessor: of all posts that name one post as their predecessor, at most one is in force,
// after any behavior of the network.
func TestOneSuccessor(t *testing.T) {
	for seed := range uint64(*histories) {
		w := newWorld(t, seed)
		for range 400 {
			w.step(seed%2 == 0)
		}
		successor := map[mark]int64{}
		for at, p := range w.log {
			if p == nil || p.first || !w.verdict[int64(at)] {
				continue
			}
			if other, twice := successor[p.prev]; twice {
				t.Fatalf("seed %d: %d and %d both replaced %v", seed, other, at, p.prev)
			}
			successor[p.prev] = int64(at)
		}
		if w.tally.effective < 5 || w.tally.refused < 5 {
			t.Fatalf("seed %d proves little: %+v", seed, w.tally)
		}
	}
}

var histories = flag.Int("histories", 250, "how many random histories a test of the fold plays")

// TestBlockedRivalBeforeTheBase is a case that random histories hardly ever find. A writer takes
// the key for absent. Its first record arrives late, between the record in force and the one that
// it replaced. It is void because of another record before it, which came even later. A reader that
// did not read this other record cannot tell.
func TestBlockedRivalBeforeTheBase(t *testing.T) {
	w := newWorld(t, 0)
	w.window, w.keys = 10, 1
	w.full = newFold(0, 0, w.window)
	at := func(offset int64, p post) {
		for int64(len(w.log)) < offset {
			w.land(nil)
		}
		p.id = uint64(offset)
		if p.key == "" {
			p.key = "k0"
		}
		w.land(&p)
	}
	at(1, post{first: true})
	at(13, post{at: 2, prev: mark{1, 1}})  // too late
	at(22, post{at: 12, first: true})      // void because of the one before
	at(24, post{at: 20, prev: mark{1, 1}}) // in force
	at(26, post{at: 25, base: 24, first: true, key: "another"})
	f := w.fresh()
	if f.from == 0 || !w.verdict[24] {
		t.Fatalf("the history is another: from %d, %v", f.from, w.verdict)
	}
	w.same(f, func(*post) bool { return true })
}

// TestOffsetsMayRecur: after a truncation another record has the offset of one that a reader has
// seen.
func TestOffsetsMayRecur(t *testing.T) {
	f := newFold(0, 0, window)
	f.apply(post{mark: mark{0, 1}, key: "k", first: true})
	if f.apply(post{mark: mark{1, 2}, key: "k", at: 1, prev: mark{0, 9}}) {
		t.Error("a record replaces one that is no longer there")
	}
	if !f.apply(post{mark: mark{2, 3}, key: "k", at: 1, prev: mark{0, 1}}) {
		t.Error("a record does not replace the one that is there")
	}
}

// TestBaseIsTheOldest: a post may turn out to be in force after a later post of another key did.
func TestBaseIsTheOldest(t *testing.T) {
	f := newFold(4, 0, window)
	f.apply(post{mark: mark{5, 5}, key: "k", at: 2, prev: mark{1, 1}})
	f.apply(post{mark: mark{6, 6}, key: "l", at: 5, first: true})
	if f.apply(post{mark: mark{7, 7}, key: "k", at: 4, prev: mark{1, 1}}) || f.state("k") == nil || f.base() != 5 {
		t.Errorf("base %d, state %v", f.base(), f.state("k"))
	}
}

// TestVoidRecordsAreForgotten: a reader forgets keys without a post in force, and records without
// effect.
func TestVoidRecordsAreForgotten(t *testing.T) {
	const window = 10
	f := newFold(0, 0, window)
	f.apply(post{mark: mark{0, 1}, key: "live", first: true})
	for i := int64(window + 1); i < 1000; i++ { // all of them too late
		f.apply(post{mark: mark{2 * i, 2}, key: fmt.Sprint("k", i), at: i, first: true})
		f.apply(post{mark: mark{2*i + 1, 2}, key: "same", at: i, first: true})
	}
	if len(f.trails) > 4*window || len(f.stray) > 5*window {
		t.Errorf("%d keys and %d records are remembered", len(f.trails), len(f.stray))
	}
	if n := len(f.trails["same"].loose); n > 3*window {
		t.Errorf("%d records of one key are remembered", n)
	}
	if f.state("live") == nil {
		t.Error("and what is in force is not")
	}
}

// TestRecordWithUnknownPredecessorIsAccepted: a reader that has read from the beginning accepts it,
// too. Otherwise readers would differ after a truncation, when a late record replaces one that is
// gone.
func TestRecordWithUnknownPredecessorIsAccepted(t *testing.T) {
	for _, from := range []int64{0, 3} {
		f := newFold(from, 0, window)
		if !f.apply(post{mark: mark{5, 5}, key: "k", at: 4, prev: mark{2, 9}}) {
			t.Errorf("not by a reader from %d", from)
		}
	}
}

const tag = "00112233aabb"

// TestHeaderGolden: every later release must read today's logs.
func TestHeaderGolden(t *testing.T) {
	for header, want := range map[string]post{
		"1 00112233aabb 00000000000000ff 12 7 9.0000000000000abc billing": {
			mark: mark{20, 0xff}, key: "billing", at: 12, base: 7, prev: mark{9, 0xabc}},
		"1 00112233aabb ffffffffffffffff 0 0 - a key with spaces": {
			mark: mark{20, 1<<64 - 1}, key: "a key with spaces", first: true},
	} {
		got, ok := decode([]byte(header), tag, 20)
		if !ok || got.mark != want.mark || got.key != want.key || got.at != want.at || got.base != want.base || got.prev != want.prev ||
			got.first != want.first {
			t.Errorf("%s is %+v, %v; want %+v", header, got, ok, want)
		}
		if s := string(want.encode(tag)); s != header {
			t.Errorf("written as %s; want %s", s, header)
		}
	}
}

// TestHeaderRefused: each record breaks one rule. A record that one reader accepts and another
// refuses would divide them permanently.
func TestHeaderRefused(t *testing.T) {
	for name, header := range map[string]string{
		"empty":                     "",
		"another format":            "2 00112233aabb 00000000000000ff 12 7 - k",
		"another topic":             "1 ffffffffffff 00000000000000ff 12 7 - k",
		"no key":                    "1 00112233aabb 00000000000000ff 12 7 - ",
		"too few fields":            "1 00112233aabb 00000000000000ff 12 7 -",
		"read beyond itself":        "1 00112233aabb 00000000000000ff 21 7 - k",
		"base beyond what was read": "1 00112233aabb 00000000000000ff 12 13 - k",
		"replaces what was unread":  "1 00112233aabb 00000000000000ff 12 7 12.0000000000000001 k",
		"negative":                  "1 00112233aabb 00000000000000ff 12 -7 - k",
		"other spelling of id":      "1 00112233aabb FF 12 7 - k",
		"other spelling of offset":  "1 00112233aabb 00000000000000ff 012 7 - k",
		"no number":                 "1 00112233aabb 00000000000000ff x 7 - k",
		"no mark":                   "1 00112233aabb 00000000000000ff 12 7 9 k",
		"control character in key":  "1 00112233aabb 00000000000000ff 12 7 - k\n",
		"long key":                  "1 00112233aabb 00000000000000ff 12 7 - " + strings.Repeat("k", 250),
		"far too long":              "1 00112233aabb 00000000000000ff 12 7 - " + strings.Repeat("k", 5000),
	} {
		if p, ok := decode([]byte(header), tag, 20); ok {
			t.Errorf("%s: taken as %+v", name, p)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte("1 00112233aabb 00000000000000ff 12 7 9.0000000000000abc billing"), int64(20))
	f.Add([]byte("1 00112233aabb 00000000000000ff 0 0 - k"), int64(0))
	f.Fuzz(func(t *testing.T, header []byte, offset int64) {
		p, ok := decode(header, tag, offset)
		if !ok {
			return
		}
		if string(p.encode(tag)) != string(header) {
			t.Errorf("%q is read as %+v, which is written as %q", header, p, p.encode(tag))
		}
		newFold(0, 0, window).apply(p)
	})
}

func TestMarks(t *testing.T) {
	for _, s := range []string{"", "never", "0", "1.", ".0000000000000001", "1.1", "-1.0000000000000001", "+1.0000000000000001",
		"1.000000000000000g", "18446744073709551615.0000000000000001", "1.00000000000000010"} {
		if m, err := parseMark(s); err == nil {
			t.Errorf("%q is %v", s, m)
		}
	}
	m := mark{1234, 0x1f}
	if got, err := parseMark(m.String()); err != nil || got != m {
		t.Errorf("%v comes back as %v, %v", m, got, err)
	}
}

// TestBatch reads, with the client library, a batch that was written without it.
func TestBatch(t *testing.T) {
	posts := []post{
		{mark: mark{id: 1}, key: "a", first: true, value: []byte("first")},
		{mark: mark{id: 2}, key: "b", at: 1, prev: mark{0, 1}, value: make([]byte, 4096)},
		{mark: mark{id: 3}, key: "c", first: true},
	}
	raw := encodeBatch(posts, tag, time.UnixMilli(1_000_000))
	part := kmsg.NewFetchResponseTopicPartition()
	part.RecordBatches = raw
	got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{}, &part, kgo.DefaultDecompressor(), nil)
	if got.Err != nil || next != 3 {
		t.Fatal(got.Err, next)
	}
	back := haul{records: got.Records}.posts(tag)
	for i, p := range back {
		want := posts[i]
		if p.offset != int64(i) || p.id != want.id || p.key != want.key || p.first != want.first || string(p.value) != string(want.value) {
			t.Errorf("%+v comes back as %+v", want, p)
		}
	}
	if len(back) != len(posts) {
		t.Errorf("%d posts come back of %d", len(back), len(posts))
	}
}

func TestKeys(t *testing.T) {
	var s *Store
	for _, key := range []string{"a", "billing/eu west", strings.Repeat("k", 249), "Zürich ☕", "-", "*"} {
		if err := s.CheckKey(key); err != nil {
			t.Error(err)
		}
	}
	for _, key := range []string{"", strings.Repeat("k", 250), "a\nb", "a\x00", "a\xff", "a\u200b"} {
		if err := s.CheckKey(key); err == nil {
			t.Errorf("%q passes", key)
		}
	}
}

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
