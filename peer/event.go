package peer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/tenure-go/tenure/driver"
)

const (
	eventStream = "text/event-stream"

	// maxVersion is the longest version in bytes, as escaped, that peers tell one another.
	maxVersion = 1024
	// maxLine bounds a line of a stream: the longest field is the record.
	maxLine = driver.MaxValue + 64
	// maxEvent bounds an event, in which fields may be repeated.
	maxEvent = 2 * maxLine
	// heartbeat is a comment: it says that the leader is there and has nothing to say.
	heartbeat = ":\n\n"
)

var (
	errLine  = fmt.Errorf("a line of the peer's is longer than %d bytes", maxLine)
	errEvent = errors.New("the peer sends what is no event")
)

// event is one server-sent event: the version as id, the record's bytes as data, and the proof as a
// field that other readers of such streams ignore.
type event struct {
	version driver.Version
	value   []byte
	proof   string
}

// escape writes a version so that it fits into a header and a line, with any bytes.
func escape(v driver.Version) string { return url.PathEscape(string(v)) }

// bytes is the event on the wire. The value has no line breaks.
func (e event) bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s\n", escape(e.version))
	if e.proof != "" {
		fmt.Fprintf(&b, "proof: %s\n", e.proof)
	}
	fmt.Fprintf(&b, "data: %s\n\n", e.value)
	return b.Bytes()
}

// decoder reads events. It holds one line and one event at a time, each bounded.
type decoder struct {
	lines *bufio.Reader
	// alive is called for each line, heartbeats included.
	alive func()
}

func newDecoder(r io.Reader, alive func()) *decoder {
	return &decoder{lines: bufio.NewReaderSize(r, maxLine), alive: alive}
}

// next returns the next event, errLine or errEvent, or the reader's error; io.EOF if the stream
// ends between events.
func (d *decoder) next() (event, error) {
	var e event
	size := 0
	for {
		line, err := d.line()
		if err != nil {
			return event{}, partial(err, size)
		}
		if len(line) == 0 {
			if size == 0 {
				continue
			}
			return e, e.check()
		}
		if line[0] == ':' {
			continue
		}
		if size += len(line); size > maxEvent {
			return event{}, errEvent
		}
		if err := e.field(line); err != nil {
			return event{}, err
		}
	}
}

func partial(err error, size int) error {
	if errors.Is(err, io.EOF) && size > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// line returns one without its end. It is valid until the next.
func (d *decoder) line() ([]byte, error) {
	line, err := d.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, errLine
	case err != nil && len(line) > 0:
		return nil, partial(err, len(line))
	case err != nil:
		return nil, err
	}
	d.alive()
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// field takes one line. Unknown fields are for later versions; a field that comes twice is an
// error.
func (e *event) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		v, err := unescape(string(value))
		if err != nil || e.version != "" {
			return errEvent
		}
		e.version = v
	case "proof":
		if e.proof != "" {
			return errEvent
		}
		e.proof = string(value)
	case "data":
		if e.value != nil {
			return errEvent
		}
		e.value = bytes.Clone(value)
	}
	return nil
}

func unescape(s string) (driver.Version, error) {
	if len(s) > maxVersion {
		return "", errEvent
	}
	v, err := url.PathUnescape(s)
	return driver.Version(v), err
}

func (e *event) check() error {
	if e.version == "" || len(e.value) == 0 || len(e.value) > driver.MaxValue {
		return errEvent
	}
	return nil
}
