// Package witness stands outside of an election, records what leaders do, and judges whether two
// of them led at the same time. Tests, the battery and the demo use it. The simulation has its own
// checker, because its time is virtual.
//
//	journal.go  a file to which processes append their acts, and a reader that follows it
//	book.go     acts in memory, the pairs of terms that overlap, and the judge of both
package witness

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// What is the kind of a record.
type What uint32

const (
	// Began is the first record of the process that tenure starts, before its first act.
	Began What = iota + 1
	// Act is one act of the work, by that process or by a descendant.
	Act
	// Asked is that the process received SIGTERM.
	Asked
	// Ended is the last record of a process that ends by itself.
	Ended
)

var names = [...]string{Began: "began", Act: "act", Asked: "asked to stop", Ended: "ended"}

func (w What) String() string {
	if w.known() {
		return names[w]
	}
	return fmt.Sprintf("what %d", uint32(w))
}

func (w What) known() bool { return w >= Began && w <= Ended }

// Record is one entry of a journal. docs/testing.md defines its bytes, for readers in any language.
type Record struct {
	// At is CLOCK_MONOTONIC in nanoseconds, read before the record is written.
	At    int64
	Token uint64
	// Candidate is the number in the candidate's name.
	Candidate uint32
	What      What
	PID       uint32
	// Root is the process that tenure started: PID itself or an ancestor.
	Root uint32
}

// size of a record in the file: 32 bytes.
var size = binary.Size(Record{})

// Writer appends to a journal. Any number of processes may append to the same file.
type Writer struct{ file *os.File }

// Open opens a journal to append to it, and creates the file if it does not exist.
func Open(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &Writer{f}, err
}

// Write appends a record by one system call, so that records of several processes never mix, and
// the records of a process that is killed remain.
func (w *Writer) Write(r Record) error {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, r); err != nil {
		return err
	}
	_, err := w.file.Write(b.Bytes())
	return err
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Reader follows a journal.
type Reader struct{ file *os.File }

// Follow opens a journal to read it while writers append to it.
func Follow(path string) (*Reader, error) {
	f, err := os.Open(path)
	return &Reader{f}, err
}

// Next returns the records appended since the last call. After an error the journal cannot be
// trusted: it has bytes that are not a record.
func (r *Reader) Next() ([]Record, error) {
	text, err := io.ReadAll(r.file)
	if err != nil {
		return nil, err
	}
	return decode(text)
}

func decode(text []byte) ([]Record, error) {
	some := make([]Record, len(text)/size)
	if _, err := binary.Decode(text, binary.LittleEndian, some); err != nil {
		return nil, err
	}
	for i, r := range some {
		if !r.What.known() {
			return some[:i], fmt.Errorf("the journal has a record of an unknown kind: %+v", r)
		}
	}
	if torn := len(text) % size; torn != 0 {
		return some, fmt.Errorf("the journal ends with %d bytes that are not a record", torn)
	}
	return some, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }
