package record

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write golden files that do not exist yet; existing ones are not changed")

// shapes has one record of every shape that was ever written.
var shapes = map[string]Record{
	"held": {
		LeaderID: "node-1", LeaderAddr: "10.0.0.1:8443", LastUpdated: time.Date(2030, 1, 2, 3, 4, 5, 678901234, time.UTC),
		Term: 42, Lease: 15 * time.Second, Incarnation: "00c0ffee00c0ffee", Seq: 7, Nonce: "0123456789abcdef",
	},
	"released": {
		LeaderID: "node-1", Term: 42, Lease: 15 * time.Second, Incarnation: "00c0ffee00c0ffee", Seq: 8,
		Nonce: "0123456789abcdef", Released: true, Successor: "node 2",
	},
	"vacant": {Term: 41, Lease: time.Minute, Nonce: "0123456789abcdef"},
	"requested": {
		LeaderID: "node-1", LastUpdated: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Term: 42, Lease: time.Second,
		Incarnation: "00c0ffee00c0ffee", Seq: 1, Nonce: "0123456789abcdef",
		Request: &Request{Term: 42, To: "node-2", By: "the operator"},
	},
	"offered": {
		LeaderID: "node-1", LastUpdated: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Term: 42, Lease: time.Second,
		Incarnation: "00c0ffee00c0ffee", Seq: 1, Nonce: "0123456789abcdef", Priority: 3,
		Request: &Request{Term: 42, To: "node-2", By: "the operator", Offer: true},
	},
	"priority": {
		LeaderID: "node-1", LastUpdated: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Term: 42, Lease: time.Second,
		Incarnation: "00c0ffee00c0ffee", Seq: 1, Nonce: "0123456789abcdef", Priority: -7,
	},
	"drift": {
		LeaderID: "node-1", LastUpdated: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Term: 42, Lease: time.Second,
		Incarnation: "00c0ffee00c0ffee", Seq: 1, Nonce: "0123456789abcdef", Drift: 10_000,
	},
	"metadata": {
		LeaderID: "nœud \"1\" <&>", LastUpdated: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Term: MaxTerm, Lease: MaxLease,
		Incarnation: "00c0ffee00c0ffee", Seq: MaxTerm, Nonce: "0123456789abcdef", Metadata: map[string]string{"zone": "b", "a": "ü"},
	},
}

func TestGoldenRecordsStillDecode(t *testing.T) {
	for name, want := range shapes {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", name+".json")
			if *update {
				writeOnce(t, golden, want)
			}
			b, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(b)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("decoded %+v, %v\nwant    %+v", got, err, want)
			}
			if again, err := Encode(want); err != nil || string(again) != string(b) {
				t.Errorf("encoded %s, %v\nwant    %s", again, err, b)
			}
		})
	}
}

func writeOnce(t *testing.T, golden string, r Record) {
	t.Helper()
	if _, err := os.Stat(golden); err == nil {
		return
	}
	b, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(golden, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	b, err := os.ReadFile("testdata/future.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(b)
	if err != nil || r.LeaderID != "node-1" || r.Term != 42 {
		t.Errorf("decoded %+v, %v", r, err)
	}
}

func TestHeld(t *testing.T) {
	for name, want := range map[string]bool{"held": true, "requested": true, "offered": true, "priority": true, "released": false, "vacant": false} {
		r := shapes[name]
		if r.Held() != want {
			t.Errorf("%s: held %v", name, r.Held())
		}
	}
}

func TestEveryLimitHoldsWhenWritingAndWhenReading(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	cases := []struct {
		name   string
		change func(*Record)
		ok     bool
		why    string
	}{
		{"longest id", func(r *Record) { r.LeaderID = long(MaxName) }, true, "at the edge"},
		{"id too long", func(r *Record) { r.LeaderID = long(MaxName + 1) }, false, "records are small"},
		{"id not UTF-8", func(r *Record) { r.LeaderID = "\xff" }, false, "JSON would change it"},
		{"address too long", func(r *Record) { r.LeaderAddr = long(MaxName + 1) }, false, "records are small"},
		{"incarnation too long", func(r *Record) { r.Incarnation = long(MaxToken + 1) }, false, "records are small"},
		{"no incarnation", func(r *Record) { r.Incarnation = "" }, false, "it identifies the holder"},
		{"no nonce", func(r *Record) { r.Nonce = "" }, false, "it distinguishes the holder's writes"},
		{"nonce too long", func(r *Record) { r.Nonce = long(MaxToken + 1) }, false, "records are small"},
		{"successor too long", func(r *Record) { r.Successor = long(MaxName + 1) }, false, "records are small"},
		{"last term", func(r *Record) { r.Term = MaxTerm }, true, "2^53-1 is exact everywhere"},
		{"term too high", func(r *Record) { r.Term = MaxTerm + 1 }, false, "some JSON readers round it"},
		{"seq too high", func(r *Record) { r.Seq = MaxTerm + 1 }, false, "likewise"},
		{"widest drift", func(r *Record) { r.Drift = MaxDrift }, true, "at the edge"},
		{"drift too wide", func(r *Record) { r.Drift = MaxDrift + 1 }, false, "no usable clock is that inaccurate"},
		{"least lease", func(r *Record) { r.Lease = time.Millisecond }, true, "at the edge"},
		{"no lease", func(r *Record) { r.Lease = 0 }, false, "no follower would wait"},
		{"longest lease", func(r *Record) { r.Lease = MaxLease }, true, "at the edge"},
		{"lease too long", func(r *Record) { r.Lease = MaxLease + time.Millisecond }, false, "followers wait no longer"},
		{"highest priority", func(r *Record) { r.Priority = MaxPriority }, true, "at the edge"},
		{"priority too high", func(r *Record) { r.Priority = MaxPriority + 1 }, false, "records are small"},
		{"priority too low", func(r *Record) { r.Priority = -MaxPriority - 1 }, false, "likewise"},
		{"request for no term", func(r *Record) { r.Request = &Request{Term: MaxTerm + 1} }, false, "it is a term too"},
		{"request to a long name", func(r *Record) { r.Request = &Request{To: long(MaxName + 1)} }, false, "records are small"},
		{"most metadata", func(r *Record) { r.Metadata = map[string]string{"k": long(MaxMetadata - 1)} }, true, "at the edge"},
		{"too much metadata", func(r *Record) { r.Metadata = map[string]string{"k": long(MaxMetadata)} }, false, "records are small"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := shapes["held"]
			c.change(&r)
			b, err := Encode(r)
			if (err == nil) != c.ok {
				t.Fatalf("encoding: %v, want ok %v: %s", err, c.ok, c.why)
			}
			if c.ok {
				if got, err := Decode(b); err != nil || !reflect.DeepEqual(got, r) {
					t.Errorf("decoded %+v, %v", got, err)
				}
			}
		})
	}
}

func TestDecodeDistinguishesForeignFromMalformed(t *testing.T) {
	held := `"leaderID":"a","term":5,"leaseMillis":2000,"incarnation":"i","seq":1,"nonce":"n"`
	cases := []struct {
		name, bytes string
		foreign     bool
		lease       time.Duration // of a malformed record
		term        uint64
		why         string
	}{
		{"empty", ``, true, 0, 0, "no JSON"},
		{"text", `node-1`, true, 0, 0, "what the old NATS package writes"},
		{"cut short", `{` + held, true, 0, 0, "no JSON"},
		{"array", `[1]`, true, 0, 0, "no object"},
		{"null", `null`, true, 0, 0, "no fields"},
		{"empty object", `{}`, true, 0, 0, "no field of a record"},
		{"another's object", `{"term":5,"nonce":"n"}`, true, 0, 0, "other formats may have these fields"},
		{"S3lect's lockfile", `{"leaderID":"a","leaderAddr":"b","lastUpdated":"2030-01-01T00:00:00Z"}`, true, 0, 0, "only the legacy mode of package s3lect understands it"},
		{"too large", `{` + held + `,"x":"` + strings.Repeat("y", MaxBytes) + `"}`, true, 0, 0, "no record is that large"},
		{"text after it", `{` + held + `}x`, true, 0, 0, "no JSON"},
		{"no nonce", `{"leaderID":"a","term":5,"leaseMillis":2000,"incarnation":"i"}`, false, 2 * time.Second, 5, "the lease and the term can be read"},
		{"lease as text", `{"leaderID":"a","term":5,"leaseMillis":"2000","incarnation":"i","nonce":"n"}`, false, MaxLease, 5, "cannot be read: the maximum lease"},
		{"lease too long", `{"leaderID":"a","term":5,"leaseMillis":3600001,"incarnation":"i","nonce":"n"}`, false, MaxLease, 5, "no wait is longer"},
		{"lease overflows", `{"term":5,"leaseMillis":9223372036854775807,"nonce":"n"}`, false, MaxLease, 5, "in nanoseconds it would wrap round"},
		{"lease below zero", `{"term":5,"leaseMillis":-1,"nonce":"n"}`, false, MaxLease, 5, ""},
		{"term too high", `{"term":9007199254740992,"leaseMillis":2000,"nonce":"n"}`, false, 2 * time.Second, 0, "it is not credible"},
		{"term below zero", `{"term":-1,"leaseMillis":2000,"nonce":"n"}`, false, 2 * time.Second, 0, ""},
		{"term with a fraction", `{"term":1.5,"leaseMillis":2000,"nonce":"n"}`, false, 2 * time.Second, 0, ""},
		{"only incarnation", `{"incarnation":"i"}`, false, MaxLease, 0, "only a record has this field"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode([]byte(c.bytes))
			if errors.Is(err, ErrForeign) != c.foreign {
				t.Fatalf("%v, want foreign %v: %s", err, c.foreign, c.why)
			}
			var broken *BrokenError
			if errors.As(err, &broken) == c.foreign {
				t.Fatalf("%v is not what was expected: %s", err, c.why)
			}
			if !c.foreign && (broken.Lease != c.lease || broken.Term != c.term) {
				t.Errorf("lease %v and term %d, want %v and %d: %s", broken.Lease, broken.Term, c.lease, c.term, c.why)
			}
		})
	}
}

func TestOddButValid(t *testing.T) {
	held := `"leaderID":"a","term":5,"leaseMillis":2000,"incarnation":"i","seq":1,"nonce":"n"`
	for name, text := range map[string]string{
		"spaces around":      " \n{ " + held + " }\n ",
		"request of null":    `{` + held + `,"request":null}`,
		"a field twice":      `{"term":1,` + held + `}`,
		"unknown and nested": `{"x":{"leaseMillis":1},` + held + `}`,
	} {
		if r, err := Decode([]byte(text)); err != nil || r.Term != 5 || r.Lease != 2*time.Second {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

var ask = Request{Term: 42, To: "node-2", By: "me"}

func TestRequestChangesNoOtherByte(t *testing.T) {
	for _, name := range []string{"held.json", "future.json"} {
		before, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		after, err := AddRequest(before, ask)
		if err != nil {
			t.Fatal(err)
		}
		const added = `,"request":{"term":42,"to":"node-2","by":"me"}`
		if got := strings.Replace(string(after), added, "", 1); got != string(before) {
			t.Errorf("%s: without the request the bytes are\n%s\nnot\n%s", name, got, before)
		}
		r, err := Decode(after)
		if err != nil || !reflect.DeepEqual(r.Request, &ask) {
			t.Errorf("%s: request %+v, %v", name, r.Request, err)
		}
	}
}

// An offer is replaced by its acceptance, or by another request, wherever it is in the bytes.
func TestOfferIsReplaced(t *testing.T) {
	offered := shapes["offered"]
	value, err := Encode(offered)
	if err != nil {
		t.Fatal(err)
	}
	middle, bare := string(value), offered
	bare.Request = nil
	plain, _ := Encode(bare)
	const offer = `"request":{"term":42,"to":"node-2","by":"the operator","offer":true}`
	cases := map[string]string{
		"in the middle": middle,
		"at the end":    strings.TrimSuffix(string(plain), "}") + `,` + offer + `}`,
		"at the start":  strings.Replace(string(plain), "{", `{ `+offer+` ,`, 1),
		"twice, with a line break": strings.Replace(strings.TrimSuffix(string(plain), "}")+`,`+offer+"\n}", "{",
			`{"Request":{"term":1},`, 1),
	}
	if !strings.Contains(middle, offer) || strings.HasSuffix(middle, offer+"}") {
		t.Fatalf("the offer is not in the middle of %s", middle)
	}
	accepted := Request{Term: 42, To: "node-2", By: "the operator"}
	const added = `,"request":{"term":42,"to":"node-2","by":"the operator"}`
	for name, value := range cases {
		after, err := AddRequest([]byte(value), accepted)
		if got := strings.Join(strings.Fields(strings.Replace(string(after), added, "", 1)), ""); err != nil || got != strings.ReplaceAll(string(plain), " ", "") {
			t.Errorf("%s: %v, the other bytes are\n%s\nnot\n%s", name, err, got, plain)
		}
		if r, err := Decode(after); err != nil || !reflect.DeepEqual(r.Request, &accepted) {
			t.Errorf("%s: request %+v, %v", name, r.Request, err)
		}
		if _, err := AddRequest([]byte(value), *offered.Request); !errors.Is(err, ErrRequested) {
			t.Errorf("%s: the same offer again: %v", name, err)
		}
		if _, err := AddRequest(after, *offered.Request); !errors.Is(err, ErrRequested) {
			t.Errorf("%s: an offer in place of a request that counts: %v", name, err)
		}
	}
}

// A leader must be able to renew, whatever is offered.
func TestOfferWithoutRoomIsLeftOut(t *testing.T) {
	full := shapes["offered"]
	full.Metadata = map[string]string{"k": strings.Repeat("x", MaxMetadata-1)}
	full.LeaderID, full.LeaderAddr = strings.Repeat("\x01", MaxName), strings.Repeat("\x01", 215)
	value, err := Encode(full)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(value)
	if err != nil || r.Request != nil || len(value) > MaxBytes || len(value) < MaxBytes-100 {
		t.Errorf("%d bytes, request %+v, %v", len(value), r.Request, err)
	}
	full.Request.Offer = false
	defer func() { full.Request.Offer = true }()
	if _, err := Encode(full); err == nil {
		t.Error("another request is left out as well")
	}
}

func TestRequestIsRefused(t *testing.T) {
	held, _ := Encode(shapes["held"])
	requested, _ := Encode(shapes["requested"])
	full := shapes["held"]
	full.Metadata = map[string]string{"k": strings.Repeat("x", MaxMetadata-1)}
	large, _ := Encode(full)
	large = []byte(strings.Replace(string(large), "{", `{"x":"`+strings.Repeat("y", MaxBytes-len(large)-8)+`",`, 1))
	cases := []struct {
		name  string
		value []byte
		q     Request
		is    error
		why   string
	}{
		{"second", requested, ask, ErrRequested, "at most one between two writes of the holder"},
		{"foreign", []byte("node-1"), ask, ErrForeign, "the bytes belong to another program"},
		{"broken", []byte(`{"leaseMillis":1}`), ask, nil, "its holder could not read it"},
		{"long name", held, Request{To: strings.Repeat("x", MaxName+1)}, nil, "records are small"},
		{"no room", large, ask, nil, "no member could read the result"},
	}
	for _, c := range cases {
		_, err := AddRequest(c.value, c.q)
		if err == nil || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want an error: %s", c.name, err, c.why)
		}
	}
	if _, err := Decode(large); err != nil {
		t.Errorf("the record without room is not valid: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Encode(r)
		if err != nil {
			return // JSON can be shorter than our encoding
		}
		if back, err := Decode(again); err != nil || !sameRecord(back, r) {
			t.Errorf("%s decodes to %+v, and again to %+v, %v", b, r, back, err)
		}
		if asked, err := AddRequest(b, ask); err == nil {
			if q, err := Decode(asked); err != nil || q.Nonce != r.Nonce || q.Term != r.Term || q.Request == nil {
				t.Errorf("with a request: %+v, %v", q, err)
			}
		}
	})
}

// sameRecord treats an empty map and no map as equal, and the same time in two zones, too.
func sameRecord(a, b Record) bool {
	if len(a.Metadata) == 0 && len(b.Metadata) == 0 {
		a.Metadata, b.Metadata = nil, nil
	}
	if !a.LastUpdated.Equal(b.LastUpdated) {
		return false
	}
	a.LastUpdated = b.LastUpdated
	return reflect.DeepEqual(a, b)
}
