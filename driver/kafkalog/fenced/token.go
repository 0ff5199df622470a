package fenced

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Header is the name of the record header that carries the fencing token of the term, in decimal
// digits.
const Header = "tenure-token"

// Token returns the fencing token of the term that wrote the record, and false if the record
// carries none.
func Token(r *kgo.Record) (token uint64, ok bool) {
	i := slices.IndexFunc(r.Headers, isToken)
	if i < 0 {
		return 0, false
	}
	token, err := strconv.ParseUint(string(r.Headers[i].Value), 10, 64)
	return token, err == nil
}

// stamped returns copies that carry the token. The client sets others of their fields, and may do
// so a second time.
func stamped(records []*kgo.Record, token uint64) []*kgo.Record {
	mark := kgo.RecordHeader{Key: Header, Value: strconv.AppendUint(nil, token, 10)}
	copies := make([]*kgo.Record, len(records))
	for i, r := range records {
		c := *r
		c.Headers = append(slices.DeleteFunc(slices.Clone(r.Headers), isToken), mark)
		copies[i] = &c
	}
	return copies
}

func isToken(h kgo.RecordHeader) bool { return h.Key == Header }
