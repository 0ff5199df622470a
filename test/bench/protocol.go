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
	// Session is that of a consumer group which nominates, on Kafka; Only: nobody else is ever elected.
	Session time.Duration `json:",omitempty"`
	Only    bool          `json:",omitempty"`
}

type do string

const (
	start do = "start" // campaign
	stop  do = "stop"  // end Run, release, report stopped
	use   do = "use"   // report usage
	// consume is to own a partition instead of campaigning, on Kafka.
	consume do = "consume"
	// sail is to take part in a fleet.
	sail do = "sail"
)

// report is what happened in a worker.
type report struct {
	What     what
	At       int64         `json:",omitempty"`
	Election string        `json:",omitempty"`
	Token    uint64        `json:",omitempty"`
	Until    int64         `json:",omitempty"` // for wrote and strayed: when the call returned
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
	strayed   what = "strayed"   // a write was refused, or may or may not have been applied; Error says why
	leads     what = "leads"     // lead was entered
	left      what = "left"      // the work of a fleet's term was told to finish, and has
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
	Resident   uint64 // bytes of the whole process, after what is free was returned
	CPU        time.Duration
	At         int64          // when CPU was read
	Requests   map[string]int // until then, by their kinds; nil: nobody counts
}
