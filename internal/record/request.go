package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// ErrRequested means that the record already has a request that counts, or this very offer. Another
// one is possible only after the holder's next write.
var ErrRequested = errors.New("a hand-over was already requested")

// AddRequest adds a request to the bytes of a record, in place of an offer if there is one, and
// changes no other byte. So fields that this version does not know survive, and followers see the
// same write of the holder, and restart no timer. It returns ErrRequested, the errors of Decode, or
// an error if the result would break a limit.
func AddRequest(value []byte, q Request) ([]byte, error) {
	r, err := Decode(value)
	switch {
	case err != nil:
		return nil, err
	case r.Request != nil && (!r.Request.Offer || *r.Request == q):
		return nil, ErrRequested
	}
	if err := request(&q); err != nil {
		return nil, err
	}
	field, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	value = withoutRequest(value)
	end := bytes.LastIndexByte(value, '}')
	out := append([]byte{}, value[:end]...)
	out = append(out, `,"request":`...)
	out = append(out, field...)
	out = append(out, value[end:]...)
	if len(out) > MaxBytes {
		return nil, about("record", tooLong(len(out), MaxBytes))
	}
	return out, nil
}

// withoutRequest returns the bytes of a record without each field that decodes into Request. There
// is a field before it or after it: a record without others is not valid.
func withoutRequest(value []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(value))
	_, _ = d.Token() // the opening brace
	from := d.InputOffset()
	out := append([]byte{}, value[:from]...)
	for kept, cut := false, false; d.More(); from = d.InputOffset() {
		name, _ := d.Token()
		var field json.RawMessage
		_ = d.Decode(&field)
		member := value[from:d.InputOffset()]
		switch {
		case strings.EqualFold(name.(string), "request"):
			cut = true
			continue
		case cut && !kept:
			member = member[bytes.IndexByte(member, ',')+1:]
		}
		out, kept = append(out, member...), true
	}
	return append(out, value[from:]...)
}
