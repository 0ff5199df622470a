// Package jsonl writes what --json promises: one object per line.
package jsonl

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Head is what every object about an election begins with, as the library's events do.
type Head struct {
	Time     time.Time `json:"time"`
	Event    string    `json:"event"`
	Election string    `json:"election"`
	// ID is who tells it.
	ID string `json:"id"`
	// Term is 0 where there is none.
	Term uint64 `json:"term"`
}

// Print writes one object. The types are ours, so that none of them can fail.
func Print(out io.Writer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("tenure: a line of JSON: " + err.Error())
	}
	fmt.Fprintf(out, "%s\n", text)
}
