package natskv

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
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
	if _, err := store.Watch(wait.Context(t), "*", func(driver.Entry) {}); err == nil || errors.Is(err, errClosed) {
		t.Error("a wildcard was watched")
	}
	if after := nc.Stats().OutMsgs; after != before {
		t.Errorf("%d messages were sent", after-before)
	}
}
