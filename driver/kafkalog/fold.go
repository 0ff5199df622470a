package kafkalog

import (
	"bytes"
	"container/list"
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

// window is how many records a writer may be behind where its record lands. It is part of the
// protocol: all readers must have the same. It bounds the part of the log that decides about a
// record, and so where a new reader may begin.
const window = 4096

// fold is a reader's result from the log: the post in force under each key, from the order of the
// records alone. It is pure. The package comment has the rule. In addition, a fold may begin
// anywhere, and knows nothing of a key until the log has shown its state for certain.
type fold struct {
	window int64
	from   int64 // where reading began; everything before is unknown, unless it is 0
	start  int64 // where the log begins, as far as known
	next   int64 // the end of the part that was read
	trails map[string]*trail
	held   list.List // of *trail with a post in force, the oldest post first
	stray  []stray   // the posts in the trails' loose, oldest first
}

// trail is the knowledge of one key.
type trail struct {
	key   string
	state *post         // in force; nil if there is none or it is not known
	place *list.Element // in held, while state is not nil
	last  int64         // the offset of the last post, in force or not; -1 if none was read
	loose []post        // the recent posts that were not in force, while no state is known
}

type stray struct {
	trail  *trail
	offset int64
}

func newFold(from, start, window int64) *fold {
	return &fold{window: window, from: from, start: start, next: from, trails: map[string]*trail{}}
}

// state returns the post in force under a key, nil if there is none.
func (f *fold) state(key string) *post {
	if t := f.trails[key]; t != nil {
		return t.state
	}
	return nil
}

// pristine reports whether the log shows that nothing was ever in force under the key. While the
// log has its head, nothing is forgotten: if no post of the key is in force, none ever was.
func (f *fold) pristine(key string) bool { return f.start == 0 && f.state(key) == nil }

// base returns the offset of the oldest post in force, or where reading stands.
func (f *fold) base() int64 {
	if oldest := f.held.Front(); oldest != nil {
		return oldest.Value.(*trail).state.offset
	}
	return f.next
}

// skip passes over records that are not posts.
func (f *fold) skip(next int64) { f.next = max(f.next, next) }

// apply takes the next post and reports whether it is in force.
func (f *fold) apply(p post) bool {
	t := f.trails[p.key]
	if t == nil {
		t = &trail{key: p.key, last: -1}
		f.trails[p.key] = t
	}
	effective := f.effective(t, p)
	t.last = p.offset
	if effective {
		f.hold(t, p)
	} else if t.state == nil {
		t.loose = append(t.loose, p)
		f.stray = append(f.stray, stray{t, p.offset})
	}
	f.next = p.offset + 1
	f.forget()
	return effective
}

// timely reports whether the writer was not too far behind.
func (f *fold) timely(p post) bool { return p.offset-p.at <= f.window }

func (f *fold) effective(t *trail, p post) bool {
	switch {
	case !f.timely(p):
		return false
	case p.first:
		return p.at >= f.from && t.last < p.at
	case t.state != nil:
		return t.state.mark == p.prev
	case p.at < f.from:
		// It may be effective: its writer relied on a part of the log that is unknown here.
		return false
	}
	now, certain := f.trace(t, p)
	if now != nil && certain {
		f.hold(t, *now)
	}
	return now == nil && certain
}

// trace learns the state of a key from a writer that knew it: prev was in force at p.at. It returns
// the post that took force between that and p, nil if none did; and whether that is certain.
func (f *fold) trace(t *trail, p post) (now *post, certain bool) {
	in, last := p.prev, int64(-1)
	for i := range t.loose {
		y := &t.loose[i]
		counts := !y.first && y.prev == in || y.first && last < y.at && in.offset < y.at
		if counts && y.offset >= p.at && f.timely(*y) {
			if y.first && y.at < f.from {
				return nil, false
			}
			now, in = y, y.mark
		}
		last = y.offset
	}
	return now, true
}

// hold puts a post in force. It nearly always is the latest of all.
func (f *fold) hold(t *trail, p post) {
	if t.place != nil {
		f.held.Remove(t.place)
	}
	t.loose, t.state = nil, &p
	before := f.held.Back()
	for before != nil && before.Value.(*trail).state.offset > p.offset {
		before = before.Prev()
	}
	if before == nil {
		t.place = f.held.PushFront(t)
	} else {
		t.place = f.held.InsertAfter(t, before)
	}
}

// forget drops loose posts that no later record can depend on.
func (f *fold) forget() {
	for len(f.stray) > 0 && f.stray[0].offset < f.next-2*f.window {
		t := f.stray[0].trail
		f.stray = f.stray[1:]
		if len(t.loose) > 0 && t.loose[0].offset < f.next-2*f.window {
			t.loose = t.loose[1:]
		}
		if t.state == nil && len(t.loose) == 0 && t.last < f.next-2*f.window {
			delete(f.trails, t.key)
		}
	}
}

// trim records where the log begins now, and drops the posts that a new reader cannot find, or not
// for certain.
func (f *fold) trim(start int64) {
	if start <= f.start {
		return
	}
	f.start = start
	low := min(start+f.window, f.next-f.window)
	for at := f.held.Front(); at != nil; {
		t, after := at.Value.(*trail), at.Next()
		if t.state.offset >= low {
			return
		}
		if t.last < f.next-2*f.window {
			f.held.Remove(at)
			delete(f.trails, t.key)
		}
		at = after
	}
}
