package demo

import (
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// entry is one thing that happened: an event of a candidate's, a deed of the demo's, or a sight of
// the record.
type entry struct {
	at    stamp.Time
	event *event
	deed  *deed
	sight *sight
}

// deed is an action or an observation of the demo outside of the election.
type deed struct {
	time time.Time // the wall clock, for people
	do   do
	id   string // the candidate's; empty if it is about none
	term uint64
	pid  int
	text string
	// expected is for events that follow from an earlier one, and bore people.
	expected bool
}

// do names a deed.
type do string

// The deeds.
const (
	doStart  do = "start"  // a candidate's process is started
	doKill   do = "kill"   // the leader is killed
	doPause  do = "pause"  // the leader is frozen
	doResume do = "resume" // and runs again
	doStop   do = "stop"   // the leader is asked to end
	doDied   do = "died"   // a candidate's process ended, and not by the demo
	doOutput do = "output" // a candidate wrote to its standard error
	doStore  do = "store"  // the demo's own connection was lost, or is back
	doPeer   do = "peer"   // a candidate cannot follow the leader directly
	doAdvise do = "advise" // the bucket has a setting that is unwise
	doUnseen do = "unseen" // the demo cannot see renewals
)
