package s3lect

import (
	"bytes"
	"encoding/json"
	"time"
)

// document is a JSON object as text, with the fields that are used here. Values are replaced in the
// text, so that all other bytes stay the same.
type document struct {
	text   []byte
	places map[string]place
	fields fields
}

// place is where the value of a field is in the text.
type place struct{ from, to int }

type fields struct {
	LeaderID    string    `json:"leaderID"`
	LeaderAddr  string    `json:"leaderAddr"`
	LastUpdated time.Time `json:"lastUpdated"`
	LeaseMillis int64     `json:"leaseMillis"`
	Incarnation string    `json:"incarnation"`
	Nonce       string    `json:"nonce"`
	Released    bool      `json:"released"`
}

// parse returns false unless the text is a JSON object. The fields in it, as far as they are there,
// must have the right types.
func parse(text []byte) (document, bool) {
	d := document{text: text, places: map[string]place{}}
	if json.Unmarshal(text, &d.fields) != nil {
		return document{}, false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return document{}, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return document{}, false
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return document{}, false
		}
		to := int(dec.InputOffset())
		// of several fields with one name the last one counts
		d.places[name.(string)] = place{to - len(raw), to}
	}
	return d, true
}

func (d *document) has(name string) bool {
	_, ok := d.places[name]
	return ok
}

// raw returns the text of a field that is in the document.
func (d *document) raw(name string) []byte {
	p := d.places[name]
	return d.text[p.from:p.to]
}

// with returns the text with other values for leaderID and lastUpdated, which must be in the
// document.
func (d *document) with(leaderID, lastUpdated []byte) []byte {
	id, updated := d.places["leaderID"], d.places["lastUpdated"]
	if id.from < updated.from {
		return splice(splice(d.text, updated, lastUpdated), id, leaderID)
	}
	return splice(splice(d.text, id, leaderID), updated, lastUpdated)
}

func splice(text []byte, p place, by []byte) []byte {
	out := make([]byte, 0, len(text)+len(by))
	out = append(out, text[:p.from]...)
	out = append(out, by...)
	return append(out, text[p.to:]...)
}
