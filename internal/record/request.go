package record

import (
	"bytes"
	"encoding/json"
	"errors"
)

// ErrRequested means that the record already has a request. Another one is possible only after the
// holder's next write.
var ErrRequested = errors.New("a hand-over was already requested")

// AddRequest adds a request to the bytes of a record, and changes no other byte. So fields that
// this version does not know survive, and followers see the same write of the holder, and restart
// no timer. It returns ErrRequested, the errors of Decode, or an error if the result would break a
// limit.
func AddRequest(value []byte, q Request) ([]byte, error) {
	r, err := Decode(value)
	if err != nil {
		return nil, err
	}
	if r.Request != nil {
		return nil, ErrRequested
	}
	if err := request(&q); err != nil {
		return nil, err
	}
	field, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
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
