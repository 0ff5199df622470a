package natskv

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
)

// countedFloor returns the floor as older releases of Tenure computed it. They assumed that every
// stream counts from 1.
func countedFloor(l life, sequence uint64) uint64 { return uint64(l) + sequence }

// TestFloor: a stream that counts from 1 keeps its old floors. Sequences that begin at a time are
// floors by themselves.
func TestFloor(t *testing.T) {
	const made life = 1795303312000000
	for _, c := range []struct {
		sequence, want uint64
		why            string
	}{
		{0, uint64(made), "an empty bucket is above all that were before it"},
		{17, uint64(made) + 17, "candidates of both releases must agree on it"},
		{absolute - 1, uint64(made) + absolute - 1, "no stream counts that high"},
		{absolute, absolute, "a time in 2005"},
		{1795303312068704, 1795303312068704, "adding the two would double it, and the next bucket could be below"},
		{1795303311000000, 1795303311000000, "the clock of who made it was late; clocks are not compared"},
	} {
		got := made.floor(c.sequence)
		if got != c.want {
			t.Errorf("sequence %d has floor %d; want %d: %s", c.sequence, got, c.want, c.why)
		}
		if got > countedFloor(made, c.sequence) {
			t.Errorf("sequence %d has floor %d, where older releases claim below that", c.sequence, got)
		}
		if back := made.sequence(got, c.sequence); back != c.sequence {
			t.Errorf("floor %d is that of sequence %d; want %d", got, back, c.sequence)
		}
	}
}

// TestSequenceOfFloor: a watch resumes after a floor, which may be of another life of the bucket.
func TestSequenceOfFloor(t *testing.T) {
	const made life = 1795303312000000
	for _, c := range []struct {
		floor, last, want uint64
		why               string
	}{
		{uint64(made) + 5, 9, 5, "it goes on from there"},
		{uint64(made) + 10, 9, 0, "the stream was put back"},
		{uint64(made), 9, 0, "there was nothing yet"},
		{uint64(made) - 5, 9, 0, "it is of an earlier life"},
		{1795303312068704, 9, 0, "it is of an earlier life that began at a time, by a clock that was ahead"},
		{1795303312068704, 1795303312068709, 1795303312068704, "it goes on from there"},
		{1795303312068704, 1795303312068703, 0, "the stream was put back"},
		{uint64(made) + 5, 1795303312068709, uint64(made) + 5, "before the first message, where the consumer begins then"},
	} {
		if got := made.sequence(c.floor, c.last); got != c.want {
			t.Errorf("floor %d in a stream that ends at %d is sequence %d; want %d: %s", c.floor, c.last, got, c.want, c.why)
		}
	}
}

// If the caller vouches for an untouched bucket, it is claimed at once.
func TestUntouchedBucketIsClaimedAtOnce(t *testing.T) {
	const first = 1795303312068704
	written := time.UnixMicro(first)
	for _, c := range []struct {
		why     string
		state   streamState
		first   uint64
		storage string
		release string
		want    bool
	}{
		{"never written", streamState{}, 0, "file", "2.15.2", true},
		{"never written, by its own report", streamState{}, 1, "file", "2.15.2", true},
		{"never written, from a time on", streamState{LastSeq: first - 1}, first, "file", "2.15.2", true},
		{"written", streamState{LastSeq: 1, Messages: 1, LastTime: written}, 0, "file", "2.15.2", false},
		{"written, from a time on", streamState{LastSeq: first, Messages: 1, LastTime: written}, first, "file", "2.15.2", false},
		{"purged", streamState{LastSeq: first, LastTime: written}, first, "file", "2.15.2", false},
		{"purged to a sequence, which may have deleted records", streamState{LastSeq: first - 1}, 0, "file", "2.15.2", false},
		{"given a first sequence after it was written", streamState{LastSeq: 17, LastTime: written}, 18, "file", "2.15.2", false},
		{"a client has dropped the setting", streamState{LastSeq: first - 1}, 0, "file", "2.15.2", false},
		{"memory", streamState{LastSeq: first - 1}, first, "memory", "2.15.2", false},
		{"a release that loses its messages", streamState{LastSeq: first - 1}, first, "file", "2.10.27", false},
		{"the same, counting from 1", streamState{}, 0, "file", "2.10.27", true},
		{"an unknown release", streamState{LastSeq: first - 1}, first, "file", "", false},
		{"a release that does not look", streamState{}, 0, "file", "2.8.4", false},
	} {
		i := streamInfo{State: c.state, Config: streamConfig{FirstSeq: c.first, Storage: c.storage}}
		if got := i.neverWritten(parseServerVersion(c.release)); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
}

func TestServerVersions(t *testing.T) {
	for text, want := range map[string]struct{ known, fixed, loses, safe bool }{
		"2.9.25": {true, false, false, false}, "2.10.0": {true, false, true, false}, "2.10.27": {true, false, true, false},
		"2.10.28": {true, false, false, true}, "2.11.0": {true, false, true, false}, "2.11.1": {true, false, true, false},
		"2.11.2": {true, false, false, true}, "2.12.2": {true, false, false, true}, "2.12.3": {true, true, false, true},
		"2.15.0-RC.1": {true, true, false, true}, "3.0.0": {true, true, false, true}, "": {}, "2.12": {}, "unknown": {},
	} {
		r := parseServerVersion(text)
		if r.known() != want.known || r.atLeast(durable) != want.fixed || r.losesFirst() != want.loses || r.beginsAnywhere() != want.safe {
			t.Errorf("%q is %v: known %v, at least %v %v, loses %v, begins anywhere %v; want %+v",
				text, r, r.known(), durable, r.atLeast(durable), r.losesFirst(), r.beginsAnywhere(), want)
		}
	}
}

// TestFirstSequence: Create begins at the time if the server supports it.
func TestFirstSequence(t *testing.T) {
	now := time.UnixMicro(1795303312068704)
	js := natsnet.JetStream(t, natsnet.Connect(t, natsnet.Play(t, nil)))
	inDomain, err := jetstream.NewWithDomain(js.Conn(), "far")
	if err != nil {
		t.Fatal(err)
	}
	bucket := func(change ...func(*jetstream.KeyValueConfig)) (c jetstream.KeyValueConfig) {
		for _, ch := range change {
			ch(&c)
		}
		return c
	}
	for _, c := range []struct {
		why    string
		js     jetstream.JetStream
		config jetstream.KeyValueConfig
		level  int
		now    time.Time
		want   uint64
	}{
		{"as it should be", js, bucket(), 5, now, 1795303312068704},
		{"the time of an unset clock", js, bucket(), 5, time.Unix(1000, 0), 0},
		{"a time before all times", js, bucket(), 5, time.Unix(-1000, 0), 0},
		{"a time in the far future", js, bucket(), 5, now.AddDate(100, 0, 0), 0},
		{"a mirror may not", js, bucket(func(c *jetstream.KeyValueConfig) { c.Mirror = &jetstream.StreamSource{Name: "A"} }), 5, now, 0},
		{"sources are for the library", js, bucket(func(c *jetstream.KeyValueConfig) { c.Sources = []*jetstream.StreamSource{{Name: "A"}} }), 5, now, 0},
		{"the library refuses it", js, bucket(func(c *jetstream.KeyValueConfig) { c.History = 65 }), 5, now, 0},
		{"the library refuses it where there are no markers", js, bucket(func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL = time.Hour }), 0, now, 0},
		{"another server's JetStream", inDomain, bucket(), 2, now, 1795303312068704},
		{"another server's JetStream, which may be too old", inDomain, bucket(), 1, now, 0},
	} {
		if got := newBucket(connection.Borrow(c.js), "B").firstSequence(c.config, c.level, c.now); got != c.want {
			t.Errorf("%s: %d; want %d", c.why, got, c.want)
		}
	}
}
