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

	// maxVersion is the longest escaped version in an event, in bytes.
	maxVersion = 1024
	// maxLine bounds a line of a stream: the longest field is the record.
	maxLine = driver.MaxValue + 64
	// maxEvent bounds an event, in which fields may be repeated.
	maxEvent = 2 * maxLine
	// heartbeat is a comment, which shows that the leader is alive.
	heartbeat = ":\n\n"
)

var (
	errLine  = fmt.Errorf("the peer sent a line of more than %d bytes", maxLine)
	errEvent = errors.New("the peer sent an invalid event")
)

// event is one server-sent event. It has the version as id, the record's bytes as data, and the
// proof in a field that other clients ignore.
type event struct {
	version driver.Version
	value   []byte
	proof   string
}

// escape escapes a version of any bytes, so that it fits into a header and a line.
func escape(v driver.Version) string { return url.PathEscape(string(v)) }

// bytes returns the event as it is sent. The value has no line breaks.
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

// line returns one line without its line break. It is valid until the next call.
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

// field reads one line. It ignores unknown fields, which later versions may send. A field that
// comes twice is an error.
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
