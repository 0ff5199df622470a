package main

import (
	"context"
	"net"
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// The bench and its members exchange lines of JSON: an identity once, then commands one way and
// reports the other.

// identity is given to a member when it is started.
type identity struct {
	ID        string
	Site      int // in sites
	Mode      string
	Addresses []string
	Via       map[string]string `json:",omitempty"` // relays to them
	// Wall is how wrong the time of day is. With Judge, each read is reported as a reader would
	// judge it that compares times of day.
	Wall  time.Duration `json:",omitempty"`
	Judge bool          `json:",omitempty"`
}

// DialContext connects to a server, through its relay if there is one.
func (me identity) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if via := me.Via[address]; via != "" {
		address = via
	}
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
}

// Dial is DialContext without a context.
func (me identity) Dial(network, address string) (net.Conn, error) {
	return me.DialContext(context.Background(), network, address)
}

type command struct {
	Do        do
	Bucket    string        `json:",omitempty"`
	Elections []string      `json:",omitempty"`
	Lease     time.Duration `json:",omitempty"`
	Ask       asking.Way    `json:",omitempty"`
	// Quiet saves the reports of writes.
	Quiet bool `json:",omitempty"`
	// Spread is the time over which the elections are started, in random order. Otherwise all of
	// them would be renewed and polled in step.
	Spread  time.Duration `json:",omitempty"`
	Session time.Duration `json:",omitempty"` // of the mode
}

type do string

const (
	start   do = "start"   // campaign
	sail    do = "sail"    // join a fleet
	stop    do = "stop"    // end the campaigns, release, report stopped
	weigh   do = "weigh"   // report used, at a moment at rest
	tally   do = "tally"   // report used, only the requests
	consume do = "consume" // instead of campaigning, act while owning a partition
)

// report is something that happened in a member. Times are from machine.Now.
type report struct {
	What     what
	At       int64         `json:",omitempty"`
	Election string        `json:",omitempty"`
	Token    uint64        `json:",omitempty"`
	Until    int64         `json:",omitempty"` // for wrote: when the call returned
	Prev     string        `json:",omitempty"` // versions of the cell, for writes
	Version  string        `json:",omitempty"`
	Released bool          `json:",omitempty"`
	Expired  bool          `json:",omitempty"` // for lost and left: at the deadline
	Age      time.Duration `json:",omitempty"` // for judged: by the times of day
	Killed   bool          `json:",omitempty"` // for left: by the bench
	Acts     []int64       `json:",omitempty"`
	Usage    *usage        `json:",omitempty"`
	Error    string        `json:",omitempty"`
}

type what string

const (
	connected what = "connected" // the member is ready for commands
	opening   what = "opening"   // the first request to the store comes next
	following what = "following" // the record was read
	sending   what = "sending"   // a write comes next
	wrote     what = "wrote"     // a write was applied; At is when it was sent
	leads     what = "leads"     // lead was entered
	left      what = "left"      // the work of a fleet's term has finished
	acted     what = "acted"     // the work may act
	stopped   what = "stopped"   // after stop
	lost      what = "lost"      // a term ended before it was resigned
	judged    what = "judged"    // a record of another leader was read; Age is how old it looks
	used      what = "used"      // after weigh or tally
	failed    what = "failed"
)

// usage is what a member uses.
type usage struct {
	machine.Usage
	Requests counts // so far; none where the servers count them
}
