package demo

import (
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// entry is one thing that happened: an event of a candidate, a deed of the demo, or a sight of the
// record.
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
	id   string // of the candidate; empty if it concerns none
	term uint64
	pid  int
	text string
	// expected is true if the deed follows from an earlier event. Only verbose output shows it.
	expected bool
}

// do names a deed.
type do string

// The deeds.
const (
	doStart  do = "start"  // a candidate's process is started
	doKill   do = "kill"   // the leader is killed
	doPause  do = "pause"  // the leader is frozen
	doResume do = "resume" // the frozen process continues
	doStop   do = "stop"   // the leader is asked to end
	doDied   do = "died"   // a candidate's process ended, but the demo did not end it
	doOutput do = "output" // a candidate wrote to its standard error
	doStore  do = "store"  // the demo's own connection was lost, or is back
	doPeer   do = "peer"   // reports of the leader do not reach a candidate
	doAdvise do = "advise" // the store has an unwise setting
	doUnseen do = "unseen" // the demo cannot see renewals
)
