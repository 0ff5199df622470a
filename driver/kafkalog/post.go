package kafkalog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/driver"
)

// mark names one post: where it stands, and the number that its writer drew for it. The number
// makes a mark unique where an offset is not, after a truncation or in a topic that was recreated.
type mark struct {
	offset int64
	id     uint64
}

func (m mark) String() string { return fmt.Sprintf("%d.%016x", m.offset, m.id) }

var errMark = errors.New("no version of this store")

// parseMark accepts only the form that String gives.
func parseMark(s string) (mark, error) {
	offset, id, _ := strings.Cut(s, ".")
	var m mark
	var err, err2 error
	m.offset, err = strconv.ParseInt(offset, 10, 64)
	m.id, err2 = strconv.ParseUint(id, 16, 64)
	if err != nil || err2 != nil || m.offset < 0 || m.String() != s {
		return mark{}, fmt.Errorf("%q is %w", s, errMark)
	}
	return m, nil
}

// post is one write to a cell as it stands in the log, whether it takes effect or not.
type post struct {
	mark
	key string
	// at is the end of the log as the writer had read it: the post's statements about the cell are
	// true there.
	at int64
	// base is the oldest post in force at that point, or that point itself where there is none: a
	// new reader may begin there.
	base int64
	// prev is the post that this one replaces, unless the writer saw none: then it is first.
	prev  mark
	first bool
	value []byte
}

func (p post) version() driver.Version { return driver.Version(p.mark.String()) }
