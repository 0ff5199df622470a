//go:build unix

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestALogThatHangsHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe() // which nobody reads
		defer func() { _ = r.Close() }()
		l := newPatientLog(w)
		for range 2 * logLines {
			if n, err := l.Write([]byte("line\n")); n != 5 || err != nil {
				t.Fatal(n, err)
			}
		}
		begun := time.Now()
		if l.flush(); time.Since(begun) != logFlush {
			t.Errorf("it is waited for %v", time.Since(begun))
		}
		_, _ = l.Write([]byte("late\n"))
	})
}

func TestLogIsPassedOn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := newPatientLog(&out)
	line := []byte("one\n")
	_, _ = l.Write(line)
	copy(line, "two\n")
	_, _ = l.Write(line)
	l.flush()
	if got := out.String(); got != "one\ntwo\n" || strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}
