package s3lect

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

var (
	testFormat = format{timeout: 15 * time.Second, skew: 5 * time.Second}
	testNow    = time.Date(2030, 1, 2, 3, 4, 5, 678901234, time.FixedZone("elsewhere", 3600))
)

const (
	heldRecord = `{"leaderID":"node-1","leaderAddr":"10.0.0.1:8443","lastUpdated":"2030-01-02T03:04:05.678901234Z","term":42,` +
		`"leaseMillis":15000,"incarnation":"00c0ffee00c0ffee","seq":7,"nonce":"0123456789abcdef"}`
	releasedRecord = `{"leaderID":"node-1","leaderAddr":"","lastUpdated":"0001-01-01T00:00:00Z","term":42,"leaseMillis":15000,` +
		`"incarnation":"00c0ffee00c0ffee","seq":8,"nonce":"0123456789abcdef","released":true,"successor":"node 2"}`
	vacantRecord = `{"leaderID":"","leaderAddr":"","lastUpdated":"0001-01-01T00:00:00Z","term":41,"leaseMillis":60000,` +
		`"incarnation":"","seq":0,"nonce":"0123456789abcdef"}`
)

// asked returns a record with a request, as a reader adds it: at the end, with all other bytes
// unchanged.
func asked(record string) string {
	return strings.TrimSuffix(record, "}") + `,"request":{"term":42,"to":"node-2"}}`
}

func lease(record, millis string) string {
	return strings.Replace(record, `"leaseMillis":15000`, `"leaseMillis":`+millis, 1)
}

// lockfile is the view of S3lect.
type lockfile struct {
	LeaderID    string    `json:"leaderID"`
	LeaderAddr  string    `json:"leaderAddr"`
	LastUpdated time.Time `json:"lastUpdated"`
}

func asLockfile(t *testing.T, b []byte) lockfile {
	t.Helper()
	var l lockfile
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return l
}

func TestRecordsAsS3lectSeesThem(t *testing.T) {
	sent := time.Date(2030, 1, 2, 3, 4, 5, 678901234, time.UTC)
	cases := []struct {
		name, record string
		want         lockfile
		why          string
	}{
		{"held", heldRecord, lockfile{"node-1#00c0ffee00c0ffee", "10.0.0.1:8443", sent.Add(5 * time.Second)},
			"no process has this name, and a clock 5 s ahead must wait the whole lease"},
		{"long lease", lease(heldRecord, "40000"), lockfile{"node-1#00c0ffee00c0ffee", "10.0.0.1:8443", sent.Add(30 * time.Second)},
			"after LeaderTimeout the lease would have 25 s to go"},
		{"short lease", lease(heldRecord, "2000"), lockfile{"node-1#00c0ffee00c0ffee", "10.0.0.1:8443", sent.Add(5 * time.Second)},
			"the future alone covers the clocks"},
		{"released", releasedRecord, lockfile{"node-1#00c0ffee00c0ffee", "", time.Time{}}, "zero is S3lect's sign of resignation"},
		{"vacant", vacantRecord, lockfile{"vacant#0123456789abcdef", "", testNow.UTC().Add(50 * time.Second)},
			"all candidates wait out an absence: a lease whose record vanished may still be valid"},
		{"held with no time", strings.Replace(heldRecord, "2030-01-02T03:04:05.678901234Z", "0001-01-01T00:00:00Z", 1),
			lockfile{"node-1#00c0ffee00c0ffee", "10.0.0.1:8443", testNow.UTC().Add(5 * time.Second)}, "a holder must not look resigned"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, err := testFormat.encode([]byte(c.record), testNow)
			if err != nil {
				t.Fatal(err)
			}
			if got := asLockfile(t, out); got != c.want {
				t.Errorf("S3lect sees %+v, want %+v: %s", got, c.want, c.why)
			}
		})
	}
}

func TestReadReversesWrite(t *testing.T) {
	escaped := strings.Replace(heldRecord, "node-1", `n\u0153ud \"1\" \u003c&\\`, 1)
	cases := map[string]string{
		"held": heldRecord, "released": releasedRecord, "vacant": vacantRecord, "asked": asked(heldRecord),
		"long lease": lease(heldRecord, "3600000"), "escapes": escaped,
		"its id looks translated": strings.Replace(heldRecord, "node-1", "node-1#00c0ffee00c0ffee", 1),
		"its id is vacant":        strings.Replace(heldRecord, "node-1", "vacant", 1),
		"unknown fields":          strings.Replace(heldRecord, "{", `{"x":{"leaderID":"y"},`, 1),
		"another order":           `{"lastUpdated":"2030-01-02T03:04:05Z","nonce":"n","incarnation":"i","leaseMillis":1,"leaderID":"a"}`,
		"spaces":                  " {\n\t\"leaderID\" : \"a\" , \"lastUpdated\" : \"2030-01-02T03:04:05Z\" , \"nonce\" : \"n\", \"incarnation\":\"i\", \"leaseMillis\" : 1 }\n",
		"a field twice":           strings.Replace(heldRecord, "{", `{"leaderID":"first",`, 1),
		"metadata":                strings.Replace(heldRecord, `"seq"`, `"metadata":{"leaderID":"z","lastUpdated":"never"},"seq"`, 1),
	}
	for name, record := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := testFormat.encode([]byte(record), testNow)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(out, []byte(record)) {
				t.Errorf("written as it is: %s", out)
			}
			if back := testFormat.decode(out, "7"); string(back) != record {
				t.Errorf("comes back as\n%s, not\n%s", back, record)
			}
		})
	}
}

// A reader that requests a hand-over must not change the time at which S3lect processes take over.
func TestRequestLeavesTheHoldersBytes(t *testing.T) {
	before, err := testFormat.encode([]byte(heldRecord), testNow)
	if err != nil {
		t.Fatal(err)
	}
	after, err := testFormat.encode([]byte(asked(string(testFormat.decode(before, "7")))), testNow.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if string(after) != asked(string(before)) {
		t.Errorf("with a request:\n%s, want\n%s", after, asked(string(before)))
	}
}

// adopted is a record as Tenure decodes it.
type adopted struct {
	LeaderID, LeaderAddr, Incarnation, Nonce string
	LastUpdated                              time.Time
	Term, LeaseMillis                        int64
	Released                                 bool
}

func adopt(t *testing.T, text string, v driver.Version) adopted {
	t.Helper()
	var a adopted
	if err := json.Unmarshal(testFormat.decode([]byte(text), v), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

const oldLockfile = `{"leaderID":"server-001","leaderAddr":"10.0.1.42:8443","lastUpdated":"2024-10-27T10:30:45Z"}`

func TestS3lectLockfileBecomesARecord(t *testing.T) {
	a := adopt(t, oldLockfile, "v1")
	if a.LeaderID != "server-001" || a.LeaderAddr != "10.0.1.42:8443" || a.Term != 0 || a.LeaseMillis != 15000 || a.Released {
		t.Errorf("read as %+v", a)
	}
	if !strings.HasPrefix(a.Incarnation, "s3lect:") || len(a.Incarnation) > 64 || a.Nonce == "" || len(a.Nonce) > 64 {
		t.Errorf("incarnation %q and nonce %q", a.Incarnation, a.Nonce)
	}
	if b := adopt(t, oldLockfile, "v2"); b.Nonce == a.Nonce || b.Incarnation != a.Incarnation {
		t.Error("a renewal must restart timers, and not look like another holder's")
	}
	if b := adopt(t, strings.Replace(oldLockfile, "001", "002", 1), "v1"); b.Incarnation == a.Incarnation {
		t.Error("another server must be another holder")
	}
	if b := adopt(t, strings.Replace(oldLockfile, "2024-10-27T10:30:45Z", "0001-01-01T00:00:00Z", 1), "v1"); !b.Released || b.LeaderID == "" {
		t.Errorf("resigned: %+v", b)
	}
	if b := adopt(t, strings.Replace(oldLockfile, "server-001", "", 1), "v1"); !b.Released || b.LeaderID == "" {
		t.Errorf("without a leader: %+v", b)
	}
	long := strings.Repeat("é", 200)
	if b := adopt(t, strings.Replace(oldLockfile, "server-001", long, 1), "v1"); len(b.LeaderID) > 256 || b.Released {
		t.Errorf("a long name: %+v", b)
	}
}

func TestOtherBytesAreLeftAlone(t *testing.T) {
	for _, text := range []string{
		"", "node-1", "null", "[1]", "{}", `{"term":5}`, `{"leaderID":"a"}`, `{"lastUpdated":"2024-10-27T10:30:45Z"}`,
		`{"leaderID":7,"lastUpdated":"2024-10-27T10:30:45Z"}`, `{"leaderID":"a","lastUpdated":"yesterday"}`,
		`{"leaderID":"a","lastUpdated":"2024-10-27T10:30:45Z","incarnation":"i"}`, oldLockfile + "x",
		lease(heldRecord, "0"), lease(heldRecord, "3600001"), lease(heldRecord, `"15000"`), strings.TrimSuffix(heldRecord, "}"),
		strings.Replace(heldRecord, `"nonce":"0123456789abcdef"`, `"nonce":""`, 1),
		strings.Replace(heldRecord, `"incarnation":"00c0ffee00c0ffee"`, `"incarnation":""`, 1),
	} {
		if out, err := testFormat.encode([]byte(text), testNow); err != nil || string(out) != text {
			t.Errorf("%s is written as %s, %v", text, out, err)
		}
		if out := testFormat.decode([]byte(text), "7"); string(out) != text {
			t.Errorf("%s is read as %s", text, out)
		}
	}
	if out := testFormat.decode([]byte(heldRecord), "7"); string(out) != heldRecord {
		t.Errorf("the record of a candidate without translation is read as %s", out)
	}
}

func TestRefusedWrites(t *testing.T) {
	record := testFormat.decode([]byte(oldLockfile), "7")
	if out, err := testFormat.encode([]byte(asked(string(record))), testNow); !errors.Is(err, errPredecessor) {
		t.Errorf("a request to a leader of S3lect's is written as %s, %v", out, err)
	}
	large := strings.Replace(heldRecord, "{", `{"x":"`+strings.Repeat("y", driver.MaxValue-len(heldRecord)-9)+`",`, 1)
	if len(large) > driver.MaxValue {
		t.Fatal("too large to begin with")
	}
	if out, err := testFormat.encode([]byte(large), testNow); err == nil {
		t.Errorf("%d bytes are written as %d", len(large), len(out))
	}
}

func FuzzFormat(f *testing.F) {
	for _, text := range []string{heldRecord, releasedRecord, vacantRecord, asked(heldRecord), oldLockfile, "x"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read := testFormat.decode(bytes.Clone(text), "7")
		if json.Valid(text) && !json.Valid(read) {
			t.Fatalf("%s is read as %s", text, read)
		}
		out, err := testFormat.encode(bytes.Clone(text), testNow)
		if err != nil {
			return
		}
		if json.Valid(text) != json.Valid(out) {
			t.Fatalf("%s is written as %s", text, out)
		}
		again, err := testFormat.encode(testFormat.decode(bytes.Clone(out), "7"), testNow)
		if err == nil && !bytes.Equal(out, text) && !bytes.Equal(again, out) && json.Valid(text) {
			a, b := asLockfile(t, out), asLockfile(t, again)
			if a.LeaderID != b.LeaderID || a.LastUpdated.Sub(b.LastUpdated).Abs() > time.Microsecond {
				t.Fatalf("%s is written as %s and then as %s", text, out, again)
			}
		}
	})
}
