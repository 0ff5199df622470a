package format

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/record"
)

var testFormat = format{ttl: time.Minute}

func TestOldLeadersAreRecognized(t *testing.T) {
	for _, c := range []struct {
		why, value string
		old        bool
	}{
		{"a name", "server-1", true},
		{"a name with spaces", "member 1 of 3", true},
		{"a name in another script", "knoten-ä", true},
		{"a number, such as a process id", "4711", true},
		{"an address", "[::1]:4222", true},
		{"a JSON object", `{"leader":"x"}`, false},
		{"a damaged JSON object", ` {"leader":"x`, false},
		{"a JSON array", `["x"]`, false},
		{"a JSON text", `"x"`, false},
		{"a JSON constant", `true`, false},
		{"no text", "\xff\xfe", false},
		{"more than any record", strings.Repeat("x", driver.MaxValue+1), false},
	} {
		got := testFormat.show([]byte(c.value), "17")
		r, err := record.Decode(got)
		if !c.old {
			if string(got) != c.value || err == nil {
				t.Errorf("%s is shown as %q; want it left alone", c.why, got)
			}
			continue
		}
		if err != nil || r.LeaderID != c.value || r.Term != 0 || r.Lease != time.Minute || !r.Held() || r.Nonce != "17" {
			t.Errorf("%s is shown as %q, %v", c.why, got, err)
		}
	}
}

func TestLongNameOfAnOldLeader(t *testing.T) {
	value := testFormat.show([]byte(strings.Repeat("ä", 1000)), "17")
	if r, err := record.Decode(value); err != nil || r.LeaderID != strings.Repeat("ä", 128) {
		t.Errorf("shown as %q, %v", value, err)
	}
}

func TestWrittenValues(t *testing.T) {
	held := record.Record{LeaderID: "a", Incarnation: "i", Nonce: "n", Term: 7, Seq: 3, Lease: 20 * time.Second}
	change := func(of func(*record.Record)) record.Record {
		r := held
		of(&r)
		return r
	}
	for _, c := range []struct {
		why      string
		r        record.Record
		absence  bool
		released bool
		want     string // in the error
		vacant   bool
	}{
		{"a leader's record", held, false, false, "", false},
		{"a longer lease", change(func(r *record.Record) { r.Lease += time.Millisecond }), false, false, "set Lease to 20s or less", false},
		{"a release", change(func(r *record.Record) { r.Released = true }), false, true, "", false},
		{"a release after a longer lease", change(func(r *record.Record) { r.Released, r.Lease = true, time.Minute }), false, true, "", false},
		{"a release over an absence", change(func(r *record.Record) { r.Released = true }), true, false, "", true},
		{"a claim over an absence", held, true, false, "", false},
		{"a vacant record", record.Record{Nonce: "n", Term: 7, Lease: time.Minute}, true, false, "", true},
		{"a request to an old leader", change(func(r *record.Record) { r.Incarnation = predecessor + "x" }), false, false, "cannot be asked", false},
	} {
		value, err := record.Encode(c.r)
		if err != nil {
			t.Fatal(err)
		}
		got, released, err := testFormat.write(value, c.absence)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v; want %q", c.why, err, c.want)
			}
			continue
		}
		r, broken := record.Decode(got)
		if err != nil || broken != nil || released != c.released || (r.LeaderID == "" && !r.Released) != c.vacant {
			t.Errorf("%s is written as %q, released %v, %v, %v", c.why, got, released, err, broken)
		}
		if r.Nonce != "n" || r.Term != 7 || !c.vacant && !bytes.Equal(got, value) || c.vacant && r.Lease != 52500*time.Millisecond {
			t.Errorf("%s is written as %q", c.why, got)
		}
	}
}

// A Tenure candidate that sees a vacant record waits longer than old candidates need to renew. If
// the lease in the record is longer, it waits for that.
func TestVacantRecordKeepsCandidatesBehindOldOnes(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		time.Second: 52500 * time.Millisecond, time.Minute: 52500 * time.Millisecond, time.Hour: time.Hour,
	} {
		value, err := record.Encode(record.Record{Nonce: "n", Term: 7, Seq: 1, Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		r, err := record.Decode(testFormat.show(value, "17"))
		if err != nil || r.Lease != want || r.Seq != 1 || r.Nonce != "n" || r.Term != 7 {
			t.Errorf("one of %v is shown as %+v, %v; want %v", lease, r, err, want)
		}
	}
}

func TestBucketThatCannotBeShared(t *testing.T) {
	for ttl, want := range map[time.Duration]string{
		time.Minute: "", time.Hour: "", 1500 * time.Millisecond: "",
		0: "it has no TTL", time.Second: "its TTL is 1s", 2 * time.Hour: "its TTL is 2h",
	} {
		err := Translator{}.Check(ttl)
		if errors.Is(err, ErrUnshareable) != (want != "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("TTL %v: %v; want %q", ttl, err, want)
		}
	}
}

// TestInspectNamesEachDanger checks the findings about a bucket and about the connection to it.
func TestInspectNamesEachDanger(t *testing.T) {
	for _, c := range []struct {
		why  string
		b    natskv.SharedBucket
		want []string
	}{
		{"as recommended", natskv.SharedBucket{TTL: 3 * time.Second, Marks: true}, []string{"warning: migrating"}},
		{"no crash would be noticed", natskv.SharedBucket{Marks: true}, []string{"warning: migrating", "unsafe: ttl"}},
		{"nobody could lead", natskv.SharedBucket{TTL: 2 * time.Second, Marks: true}, []string{"warning: migrating", "unsafe: ttl"}},
		{"releases are not marked", natskv.SharedBucket{TTL: time.Minute}, []string{"warning: migrating", "advice: migrating"}},
		{"old client libraries do not know markers", natskv.SharedBucket{TTL: time.Minute, MarkerTTL: time.Hour, Marks: true},
			[]string{"warning: migrating", "warning: limit_marker_ttl"}},
	} {
		var got []string
		for _, x := range (Translator{}).Inspect(c.b, time.Second) {
			got = append(got, x.Severity.String()+": "+x.Setting)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q; want %q", c.why, got, c.want)
		}
	}
}

// FuzzShow: any value is left alone or shown as a record that decodes.
func FuzzShow(f *testing.F) {
	for _, seed := range []string{"server-1", "{", `{"nonce":"n","leaseMillis":1000}`, `{"leaderID":"a","nonce":"n","leaseMillis":3600000,"released":true}`, "\xff", "1e400"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		shown := testFormat.show(bytes.Clone(value), "17")
		if len(value) == 0 || bytes.Equal(shown, value) {
			return
		}
		if _, err := record.Decode(shown); err != nil && errors.Is(err, record.ErrForeign) {
			t.Errorf("%q is shown as %q: %v", value, shown, err)
		}
	})
}
