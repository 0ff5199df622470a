package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/witness"
)

// The limits of the shown parts of the journal and of each log.
const (
	tailRecords = 60
	tailBytes   = 8 << 10
)

// evidence returns a text that helps to find out why a run failed. The end says most, since long
// logs are often cut off at the beginning: first the end of each log, then the end of the journal,
// then the faults and their effects.
func (s *stage) evidence(o outcome) string {
	var text strings.Builder
	for _, c := range s.candidates {
		fmt.Fprintf(&text, "  %s says:\n    %s\n", c.id(), strings.ReplaceAll(tail(c.log()), "\n", "\n    "))
	}
	if s.watch != nil {
		fmt.Fprintf(&text, "  the journal ends with:\n%s", summary(s.watch.records))
		fmt.Fprintf(&text, "  by time: %v\n", witness.ByTime(s.watch.records))
		fmt.Fprintf(&text, "  by order: %v\n", witness.ByOrder(s.watch.records))
	}
	s.mu.Lock()
	notes := slices.Clone(s.notes)
	s.mu.Unlock()
	fmt.Fprintf(&text, "  what happened, in seconds of CLOCK_MONOTONIC:\n    %s\n", strings.Join(notes, "\n    "))
	for _, err := range o.errs {
		fmt.Fprintln(&text, "  error:", err)
	}
	fmt.Fprintf(&text, "  files: %s\n", s.dir)
	return text.String()
}

// summary shows successive acts of one worker and its children on one line.
func summary(records []witness.Record) string {
	same := func(r, q witness.Record) bool {
		return q.What == witness.Act && q.Token == r.Token && q.Root == r.Root && q.Candidate == r.Candidate
	}
	var lines []string
	for i := 0; i < len(records); {
		r, n := records[i], 1
		for r.What == witness.Act && i+n < len(records) && same(r, records[i+n]) {
			n++
		}
		line := fmt.Sprintf("    %.4f  token %d  c%d  process %d of %d: %v", seconds(r.At), r.Token, r.Candidate, r.PID, r.Root, r.What)
		if n > 1 {
			line += fmt.Sprintf(", and %d more of %d until %.4f", n-1, r.Root, seconds(records[i+n-1].At))
		}
		lines = append(lines, line)
		i += n
	}
	return strings.Join(lines[max(0, len(lines)-tailRecords):], "\n") + "\n"
}

// tail returns the end of a file, in whole lines.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return filepath.Base(path) + ": " + err.Error()
	}
	if len(text) > tailBytes {
		_, text, _ = bytes.Cut(text[len(text)-tailBytes:], []byte("\n"))
	}
	return strings.TrimRight(string(text), "\n")
}
