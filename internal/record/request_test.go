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
