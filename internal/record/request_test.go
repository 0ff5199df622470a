package record

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

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
