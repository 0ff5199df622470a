package natskv

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/driver/watches"
	"github.com/tenure-go/tenure/internal/test/wait"
)

const testLease = 15 * time.Second

// safe returns a bucket without findings.
func safe() survey {
	return survey{
		bucket: "B",
		info: streamInfo{
			Config: streamConfig{
				Retention: "limits", Discard: "new", Storage: "file", Replicas: 3,
				MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxMsgsPerSubject: 1,
			},
			Cluster: streamGroup{Name: "C"},
			State:   streamState{LastSeq: 1795303312068704},
		},
		server:     "2.15.2",
		maxPayload: 1 << 20,
	}
}

func TestInspect(t *testing.T) {
	type finding struct {
		severity driver.Severity
		setting  string
	}
	advice := func(setting string) finding { return finding{driver.Advice, setting} }
	warning := func(setting string) finding { return finding{driver.Warning, setting} }
	unsafe := func(setting string) finding { return finding{driver.Unsafe, setting} }
	for _, c := range []struct {
		name   string
		why    string
		change func(s *survey, c *streamConfig)
		want   []finding
	}{
		{"safe", "a warning that is always there is not read",
			func(*survey, *streamConfig) {}, nil},
		{"five replicas", "more is fine",
			func(_ *survey, c *streamConfig) { c.Replicas = 5 }, nil},
		{"one replica in a cluster", "the cluster is there and not used",
			func(_ *survey, c *streamConfig) { c.Replicas = 1 }, []finding{warning("replicas")}},
		{"two replicas", "two need both, so it is worse than one",
			func(_ *survey, c *streamConfig) { c.Replicas = 2 }, []finding{warning("replicas")}},
		{"single server", "many choose that knowingly",
			func(s *survey, c *streamConfig) { c.Replicas, s.info.Cluster.Name = 1, "" }, []finding{advice("replicas")}},
		{"memory of one", "every restart sets terms back",
			func(s *survey, c *streamConfig) { c.Replicas, c.Storage, s.info.Cluster.Name = 1, "memory", "" },
			[]finding{advice("replicas"), unsafe("storage")}},
		{"memory of three", "all must restart at once",
			func(_ *survey, c *streamConfig) { c.Storage = "memory" }, []finding{warning("storage")}},
		{"asynchronous files", "acknowledged and kept are two things then",
			func(_ *survey, c *streamConfig) { c.PersistMode = "async" }, []finding{warning("persist_mode")}},
		{"ttl below the lease", "a record vanishes under its leader",
			func(_ *survey, c *streamConfig) { c.MaxAge, c.MarkerTTL = testLease-1, time.Hour }, []finding{unsafe("ttl")}},
		{"ttl near the lease", "the server's clock may step",
			func(_ *survey, c *streamConfig) { c.MaxAge, c.MarkerTTL = testLease, time.Hour }, []finding{warning("ttl")}},
		{"ttl far above the lease", "it is garbage collection, and people think that it elects",
			func(_ *survey, c *streamConfig) { c.MaxAge, c.MarkerTTL = 3*testLease, time.Hour }, []finding{advice("ttl")}},
		{"ttl without markers", "watches get no push of an expiry",
			func(_ *survey, c *streamConfig) { c.MaxAge = time.Hour }, []finding{advice("ttl"), advice("limit_marker_ttl")}},
		{"small values", "the headers count, so 4096 is not enough",
			func(_ *survey, c *streamConfig) { c.MaxMsgSize = driver.MaxValue }, []finding{warning("max_value_size")}},
		{"large enough values", "the limit that the remedy sets must be enough",
			func(_ *survey, c *streamConfig) { c.MaxMsgSize = 8192 }, nil},
		{"small payloads", "the server's limit counts as well",
			func(s *survey, _ *streamConfig) { s.maxPayload = 1024 }, []finding{warning("max_payload")}},
		{"limited bytes", "other data can fill the bucket",
			func(_ *survey, c *streamConfig) { c.MaxBytes = 1 << 20 }, []finding{advice("max_bytes")}},
		{"few bytes left", "the next record is refused",
			func(s *survey, c *streamConfig) { c.MaxBytes, s.info.State.Bytes = 1<<20, 1<<20-4096 }, []finding{warning("max_bytes")}},
		{"no message left", "the next key is refused",
			func(s *survey, c *streamConfig) { c.MaxMsgs, s.info.State.Messages = 100, 100 }, []finding{warning("max_msgs")}},
		{"limited messages that push out", "records of live leaders are removed for others",
			func(_ *survey, c *streamConfig) { c.MaxMsgs, c.Discard = 100, "old" }, []finding{unsafe("discard")}},
		{"old discard policy without limits", "nothing is ever discarded",
			func(_ *survey, c *streamConfig) { c.Discard = "old" }, nil},
		{"no overwriting", "a renewal is refused",
			func(_ *survey, c *streamConfig) { c.DiscardNewPerSubject = true }, []finding{unsafe("discard_new_per_subject")}},
		{"mirror", "it does not decide",
			func(_ *survey, c *streamConfig) { c.Mirror = &origin{"KV_A"} }, []finding{unsafe("mirror")}},
		{"sources", "writes come past the condition",
			func(_ *survey, c *streamConfig) { c.Sources = []origin{{"KV_A"}} }, []finding{unsafe("sources")}},
		{"transform", "keys are not where they are looked for",
			func(_ *survey, c *streamConfig) { c.Transform = []byte(`{"src":">"}`) }, []finding{unsafe("subject_transform")}},
		{"sealed", "no write is ever taken",
			func(_ *survey, c *streamConfig) { c.Sealed = true }, []finding{unsafe("sealed")}},
		{"no acknowledgements", "no write is ever known",
			func(_ *survey, c *streamConfig) { c.NoAck = true }, []finding{unsafe("no_ack")}},
		{"work queue", "reading a record removes it",
			func(_ *survey, c *streamConfig) { c.Retention = "workqueue" }, []finding{unsafe("retention")}},
		{"history", "no client reads it",
			func(_ *survey, c *streamConfig) { c.MaxMsgsPerSubject = 64 }, []finding{advice("history")}},
		{"endless history", "no client reads it",
			func(_ *survey, c *streamConfig) { c.MaxMsgsPerSubject = -1 }, []finding{advice("history")}},
		{"sequences from 1", "they come back when it is recreated",
			func(s *survey, _ *streamConfig) { s.info.State.LastSeq = 17 }, []finding{warning("first_seq")}},
		{"sequences from 1, empty", "a purge is enough",
			func(s *survey, _ *streamConfig) { s.info.State.LastSeq = 0 }, []finding{warning("first_seq")}},
		{"sequences that begin at a time", "that is how Create makes it",
			func(s *survey, c *streamConfig) {
				c.FirstSeq, s.info.Created = 1795303312068704, time.UnixMicro(1795303312100000)
			}, nil},
		{"sequences that begin at a wrong time", "the clock that comes next may be right",
			func(s *survey, c *streamConfig) {
				c.FirstSeq, s.info.Created = 1795303312068704, time.UnixMicro(1795203312068704)
			},
			[]finding{warning("first_seq")}},
		{"sequences that begin at a time, of a stream without a known age", "nothing to compare with",
			func(_ *survey, c *streamConfig) { c.FirstSeq = 1795303312068704 }, nil},
		{"a release that loses such streams", "a restart sets terms back",
			func(s *survey, c *streamConfig) {
				c.FirstSeq, s.info.Created, s.server, c.Replicas = 1795303312068704, time.UnixMicro(1795303312068704), "2.11.1", 1
			}, []finding{warning("replicas"), unsafe("first_seq")}},
		{"such a stream in memory", "it has no file to lose",
			func(s *survey, c *streamConfig) {
				c.FirstSeq, s.info.Created, s.server, c.Storage = 1795303312068704, time.UnixMicro(1795303312068704), "2.10.27", "memory"
			}, []finding{warning("storage"), warning("server")}},
		{"old release", "acknowledged writes got lost",
			func(s *survey, _ *streamConfig) { s.server = "2.12.2" }, []finding{warning("server")}},
		{"release that is fixed", "there is nothing to upgrade to",
			func(s *survey, _ *streamConfig) { s.server = "2.12.3" }, nil},
		{"unknown release", "a handle hides it",
			func(s *survey, _ *streamConfig) { s.server, s.maxPayload = "", 0 }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := safe()
			c.change(&s, &s.info.Config)
			var got []finding
			for _, f := range inspect(s, testLease) {
				got = append(got, finding{f.Severity, f.Setting})
				if f.Problem == "" || f.Remedy == "" {
					t.Errorf("%v lacks something", f)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %v; want %v: %s", got, c.want, c.why)
			}
		})
	}
}

func TestCheckKey(t *testing.T) {
	s := newStore(nil)
	for _, c := range []struct {
		key  string
		text string // the text of the error; empty: the key is good
		why  string
	}{
		{"billing", "", "a plain name"},
		{"a/b=c_d-e.F.0", "", "all that is allowed"},
		{strings.Repeat("k", 512), "", "the longest"},
		{"", "empty", "a subject may not end with a dot"},
		{strings.Repeat("k", 513), "longer than 512", "a line of the protocol has a limit"},
		{"a*", `'*'`, "a wildcard"},
		{"a.>", `'>'`, "a wildcard"},
		{"a b", `' '`, "a space ends a subject"},
		{"a\nb", `'\n'`, "a line end ends a command"},
		{"café", `'é'`, "the client library refuses it, and so would the old candidates"},
		{`a"b`, `'"'`, "it would end a string in a request"},
		{"a\\b", `'\\'`, "it would escape in a request"},
		{"a\x00b", `'\x00'`, "no subject holds it"},
		{"a\xffb", "'\ufffd'", "it is not UTF-8"},
		{".a", "dot", "a token may not be empty"},
		{"a.", "dot", "a token may not be empty"},
		{"a..b", "dot", "a token may not be empty"},
	} {
		err := s.CheckKey(c.key)
		switch {
		case c.text == "" && err != nil:
			t.Errorf("%q: %v; want it to be good: %s", c.key, err, c.why)
		case c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)):
			t.Errorf("%q: %v; want it to say %s: %s", c.key, err, c.text, c.why)
		}
	}
	if d := s.MinLease(); d != 500*time.Millisecond {
		t.Errorf("the shortest lease is %v", d)
	}
}

// TestBadKeyIsNotSent: the caller may not have used CheckKey.
func TestBadKeyIsNotSent(t *testing.T) {
	nc, store := play(t, func(*nats.Msg) []byte { return nil })
	before := nc.Stats().OutMsgs
	if _, err := store.Read(wait.Context(t), "a.>"); err == nil {
		t.Error("a wildcard was read")
	}
	if _, err := store.CompareAndSwap(wait.Context(t), "a.*", "", nil); err == nil {
		t.Error("a wildcard was written to")
	}
	if _, err := store.Watch(wait.Context(t), "*", func(driver.Entry) {}); err == nil || errors.Is(err, watches.ErrClosed) {
		t.Error("a wildcard was watched")
	}
	if after := nc.Stats().OutMsgs; after != before {
		t.Errorf("%d messages were sent", after-before)
	}
}

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
