package kafkalog

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// headerKey is the one header of a record of ours. The election's record is the value as it is, so
// that any consumer shows it; the Kafka key stays empty, so that a broker refuses the record if the
// topic becomes compacted.
const headerKey = "tenure"

// format is the first field, for a change of the others.
const format = "1"

// maxHeader is longer than any header with a key that CheckKey accepts.
const maxHeader = 512

// encode returns the header of a post in the topic of that tag. The key comes last, since it may
// hold spaces.
func (p post) encode(tag string) []byte {
	prev := "-"
	if !p.first {
		prev = p.prev.String()
	}
	return fmt.Appendf(nil, "%s %s %016x %d %d %s %s", format, tag, p.id, p.at, p.base, prev, p.key)
}

// decode reads the header of the record at this offset. It returns false for a record that is not a
// post of this topic: the format of a later release, a record meant for an earlier topic of that
// name, or a foreign one.
func decode(header []byte, tag string, offset int64) (post, bool) {
	fields := strings.SplitN(string(header[:min(len(header), maxHeader+1)]), " ", 7)
	if len(header) > maxHeader || len(fields) != 7 {
		return post{}, false
	}
	p := post{mark: mark{offset: offset}, key: fields[6]}
	var bad [3]error
	p.id, bad[0] = strconv.ParseUint(fields[2], 16, 64)
	p.at, bad[1] = strconv.ParseInt(fields[3], 10, 64)
	p.base, bad[2] = strconv.ParseInt(fields[4], 10, 64)
	for _, err := range bad {
		if err != nil {
			return post{}, false
		}
	}
	if p.first = fields[5] == "-"; !p.first {
		var err error
		if p.prev, err = parseMark(fields[5]); err != nil {
			return post{}, false
		}
	}
	// The comparison also checks the format, the topic's tag and the spelling of the numbers.
	return p, p.honest() && bytes.Equal(p.encode(tag), header)
}

// isLater reports whether a header, of the topic of that tag, is in another format. Then a rule
// that is not known here decides which writes take effect, so that two readers would see two
// leaders.
func isLater(header []byte, tag string) bool {
	fields := strings.SplitN(string(header[:min(len(header), maxHeader)]), " ", 3)
	return len(fields) == 3 && fields[0] != format && fields[1] == tag
}

// honest reports whether the numbers can be those that a writer saw: none of them lies in its
// future.
func (p post) honest() bool {
	return 0 <= p.base && p.base <= p.at && p.at <= p.offset && (p.first || p.prev.offset < p.at) && checkKey(p.key) == nil
}
