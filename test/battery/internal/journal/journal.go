// Package journal is what the workers of the battery leave behind: a file to which each appends what it does, in the order in which
// it happens. What a process that is killed has written stays.
package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// What is what was done.
type What uint32

const (
	// Began is the first thing that the process does which tenure started, before its first act.
	Began What = iota + 1
	// Act is one act of the work, of that process or one that it has started.
	Act
	// Asked is that the process was sent SIGTERM.
	Asked
	// Ended is the last thing that the process does, if it may.
	Ended
)

func (w What) String() string {
	if names := [...]string{"", "began", "act", "asked to stop", "ended"}; int(w) < len(names) {
		return names[w]
	}
	return fmt.Sprintf("what %d", uint32(w))
}

// Record is one entry. In the file all have the same size.
type Record struct {
	// At is CLOCK_MONOTONIC in nanoseconds, before the record was written.
	At    int64
	Token uint64
	// Candidate is the number in the candidate's name.
	Candidate uint32
	What      What
	PID       uint32
	// Root is the process that tenure started, itself or an ancestor of PID.
	Root uint32
}

var size = binary.Size(Record{})

// Writer appends to a journal. Many processes may append to one.
type Writer struct{ file *os.File }

// Open opens a journal to append to it, and makes it if there is none.
func Open(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &Writer{f}, err
}

// Write appends a record by one system call, so that records of several processes are never mixed.
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

// Follow opens a journal to read it as it grows.
func Follow(path string) (*Reader, error) {
	f, err := os.Open(path)
	return &Reader{f}, err
}

// Next returns what was appended since the last time.
func (r *Reader) Next() ([]Record, error) {
	var all []Record
	var buf [1 << 15]byte
	whole := buf[:len(buf)/size*size]
	for {
		n, err := io.ReadFull(r.file, whole)
		if n%size != 0 {
			return all, fmt.Errorf("the journal ends with %d bytes that are no record", n%size)
		}
		some := make([]Record, n/size)
		if _, err := binary.Decode(whole[:n], binary.LittleEndian, some); err != nil {
			return all, err
		}
		all = append(all, some...)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return all, nil
		case err != nil:
			return all, err
		}
	}
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }
