package main

import (
	"context"
	"net"
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// The bench and its members exchange lines of JSON. A member receives an identity once, in its
// environment. Then it receives commands and sends reports.

// identity is given to a member when it is started.
type identity struct {
	ID        string
	Site      int // index in sites
	Mode      string
	Addresses []string
	Via       map[string]string `json:",omitempty"` // the relay to each address
	// Wall is the error of the time of day. With Judge, each read is reported with the age of the
	// record by the times of day.
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
	// Spread is the time over which the elections are started, in random order. Without it, all of
	// them would be renewed and polled at the same moments.
	Spread  time.Duration `json:",omitempty"`
	Session time.Duration `json:",omitempty"` // of the mode
}

type do string

const (
	start     do = "start"      // campaign
	joinFleet do = "join fleet" // join a fleet
	stop      do = "stop"       // end the campaigns, release, report stopped
	weigh     do = "weigh"      // report used, when the process is at rest
	tally     do = "tally"      // report used with the requests only
	consume   do = "consume"    // instead of campaigning, act while owning a partition
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

// usage is the usage of a member.
type usage struct {
	machine.Usage
	Requests counts // so far; empty if the servers count them
}
