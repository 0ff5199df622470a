//go:build unix

package main

import (
	"bytes"
	"io"
	"time"
)

// patientLog passes lines on to a writer that may hang, such as a pipe that no process reads. It
// drops lines and does not wait: a log must not cost a lease, or delay a signal.
type patientLog struct {
	out    io.Writer
	lines  chan []byte
	ending chan struct{}
	ended  chan struct{}
}

const (
	logLines = 1024 // the number of lines that may wait
	logFlush = time.Second
)

func newPatientLog(out io.Writer) *patientLog {
	l := &patientLog{out: out, lines: make(chan []byte, logLines), ending: make(chan struct{}), ended: make(chan struct{})}
	go l.pass()
	return l
}

// Write takes one line.
func (l *patientLog) Write(line []byte) (int, error) {
	select {
	case l.lines <- bytes.Clone(line):
	default:
	}
	return len(line), nil
}

func (l *patientLog) pass() {
	defer close(l.ended)
	for {
		select {
		case line := <-l.lines:
			_, _ = l.out.Write(line)
		case <-l.ending:
			l.rest()
			return
		}
	}
}

func (l *patientLog) rest() {
	for {
		select {
		case line := <-l.lines:
			_, _ = l.out.Write(line)
		default:
			return
		}
	}
}

// flush waits until the lines are written, for logFlush at most. Later lines are lost.
func (l *patientLog) flush() {
	close(l.ending)
	select {
	case <-l.ended:
	case <-time.After(logFlush):
	}
}
