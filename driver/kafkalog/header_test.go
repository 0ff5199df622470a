package kafkalog

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
