package main

import (
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
)

// The parent and a worker speak in lines of JSON: commands one way, reports the other.

// command is what a worker shall do.
type command struct {
	Do do
	// For start.
	Bucket    string        `json:",omitempty"`
	Elections []string      `json:",omitempty"`
	Lease     time.Duration `json:",omitempty"`
	Ask       asking.Way    `json:",omitempty"`
	// Quiet saves the reports on writes, of which a crowd makes many.
	Quiet bool `json:",omitempty"`
}

type do string

const (
	start do = "start" // campaign
	stop  do = "stop"  // end Run, release, report stopped
	use   do = "use"   // report usage
)

// report is what happened in a worker.
type report struct {
	What     what
	At       int64   `json:",omitempty"`
	Election string  `json:",omitempty"`
	Token    uint64  `json:",omitempty"`
	Prev     string  `json:",omitempty"` // versions of the cell, for writes
	Version  string  `json:",omitempty"`
	Released bool    `json:",omitempty"`
	Acts     []int64 `json:",omitempty"`
	Usage    *usage  `json:",omitempty"`
	Error    string  `json:",omitempty"`
}

type what string

const (
	connected what = "connected" // for the first time, or again
	opening   what = "opening"   // the first request to the store comes next
	following what = "following" // the record was read
	sending   what = "sending"   // a write comes next
	wrote     what = "wrote"     // it was applied; At is when it was sent
	leads     what = "leads"     // lead was entered
	acted     what = "acted"     // the work was told that it may act
	stopped   what = "stopped"   // after stop
	used      what = "used"      // after use
	failed    what = "failed"
)

// usage is what a worker takes up.
type usage struct {
	Goroutines int    // at rest
	Peak       int    // the most since the last usage
	Heap       uint64 // bytes, after a collection
	CPU        time.Duration
	At         int64 // when CPU was read
}
