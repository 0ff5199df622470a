package peer

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
)

func decodeAll(text string) (events []event, err error) {
	d := newDecoder(strings.NewReader(text), func() {})
	for {
		e, err := d.next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func TestEventsRoundTrip(t *testing.T) {
	for _, v := range []driver.Version{"1", `"d41d8cd98f00b204e9800998ecf8427e"`, "a b%/\n\x00\xff", driver.Version(strings.Repeat("v", maxVersion))} {
		for _, value := range [][]byte{[]byte("{}"), []byte(" x: y "), bytes.Repeat([]byte{'x'}, driver.MaxValue)} {
			e := event{version: v, value: value, proof: "p"}
			got, err := decodeAll(heartbeat + string(e.bytes()) + heartbeat)
			if !errors.Is(err, io.EOF) || len(got) != 1 || got[0].version != v || !bytes.Equal(got[0].value, value) || got[0].proof != "p" {
				t.Errorf("version %q with %d bytes: %d events, %v", v, len(value), len(got), err)
			}
		}
	}
}

func TestInvalidEvents(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	tests := []struct {
		name, text string
		events     int
		err        error
		why        string
	}{
		{"nothing", "", 0, io.EOF, "the leader left"},
		{"heartbeats", ":\n\n: words\n\n\n\n", 0, io.EOF, "they say nothing"},
		{"carriage returns", "id: 1\r\ndata: {}\r\n\r\n", 1, io.EOF, "the format allows them"},
		{"unknown fields", "id: 1\nretry: 7\nx\ndata: {}\n\n", 1, io.EOF, "later versions may have more"},
		{"cut in a line", "id: 1\nda", 0, io.ErrUnexpectedEOF, "half an event is none"},
		{"cut between lines", "id: 1\ndata: {}\n", 0, io.ErrUnexpectedEOF, "half an event is none"},
		{"no version", "data: {}\n\n", 0, errEvent, "no candidate could claim from it"},
		{"no record", "id: 1\n\n", 0, errEvent, "a leader never pushes an absence"},
		{"version twice", "id: 1\nid: 2\ndata: {}\n\n", 0, errEvent, "which one is signed?"},
		{"record twice", "id: 1\ndata: {}\ndata: {}\n\n", 0, errEvent, "records are one line"},
		{"proof twice", "id: 1\nproof: a\nproof: b\ndata: {}\n\n", 0, errEvent, "one is enough"},
		{"bad escape", "id: %zz\ndata: {}\n\n", 0, errEvent, "no version is written so"},
		{"long line", "data: " + long + "\n\n", 0, errLine, "memory is bounded"},
		{"endless line", long + long, 0, errLine, "memory is bounded"},
		{"long record", "id: 1\ndata: " + long[:driver.MaxValue+1] + "\n\n", 0, errEvent, "no store holds it"},
		{"long version", "id: " + long[:maxVersion+1] + "\ndata: {}\n\n", 0, errEvent, "memory is bounded"},
		{"endless event", strings.Repeat("x: "+long[:1000]+"\n", 20), 0, errEvent, "time is bounded too"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeAll(tt.text)
			if len(got) != tt.events || !errors.Is(err, tt.err) {
				t.Errorf("%d events, %v; want %d, %v: %s", len(got), err, tt.events, tt.err, tt.why)
			}
		})
	}
}

// FuzzDecoder: no input makes the decoder panic or exceed a limit, and each decoded event encodes
// as it was read.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte(heartbeat + string(event{version: "1", value: []byte("{}"), proof: "p"}.bytes())))
	f.Add([]byte("id: %22x%22\r\nproof:p\r\ndata:{}\r\n\r\n"))
	f.Add([]byte("id\ndata\n\n"))
	f.Add([]byte("::\n\n\n"))
	f.Add(bytes.Repeat([]byte("x:y\n"), 5000))
	f.Fuzz(func(t *testing.T, text []byte) {
		events, err := decodeAll(string(text))
		if err == nil {
			t.Fatal("it never ends")
		}
		for _, e := range events {
			if len(e.value) == 0 || len(e.value) > driver.MaxValue || e.version == "" || len(e.version) > maxVersion {
				t.Fatalf("out of bounds: %q", e)
			}
			if strings.ContainsAny(e.proof+string(e.value), "\r\n") || len(escape(e.version)) > maxVersion {
				continue // a lone carriage return, or a version with fewer escapes than needed
			}
			again, err := decodeAll(string(e.bytes()))
			if len(again) != 1 || again[0].version != e.version || !bytes.Equal(again[0].value, e.value) || again[0].proof != e.proof {
				t.Fatalf("%q comes back as %q, %v", e, again, err)
			}
		}
	})
}
