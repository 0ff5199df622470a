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
	// Spread is the time over which the elections are begun, in an order that each worker draws for itself. All of them
	// would otherwise be renewed and polled in step.
	Spread time.Duration `json:",omitempty"`
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
	At       int64         `json:",omitempty"`
	Election string        `json:",omitempty"`
	Token    uint64        `json:",omitempty"`
	Until    int64         `json:",omitempty"` // for wrote: when the answer came
	Prev     string        `json:",omitempty"` // versions of the cell, for writes
	Version  string        `json:",omitempty"`
	Released bool          `json:",omitempty"`
	Expired  bool          `json:",omitempty"` // for lost: at the deadline
	Age      time.Duration `json:",omitempty"` // for judged: by the times of day
	Acts     []int64       `json:",omitempty"`
	Usage    *usage        `json:",omitempty"`
	Error    string        `json:",omitempty"`
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
	lost      what = "lost"      // the term ended before it was resigned; Error says why
	judged    what = "judged"    // a record was read that somebody else holds; Age is how old it looks
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
