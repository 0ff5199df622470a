package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// role is what a member's process receives first. Orders follow.
type role struct {
	place
	Peer      int // index in peers
	Elections []string
	Quiet     bool // do not ask: only the usage counts
}

type order string

const (
	stop  order = "stop"  // hand over, and report stopped
	weigh order = "weigh" // report used
)

// report is something that happened in a member. Times are from machine.Now.
type report struct {
	What  what
	At    int64   `json:",omitempty"`
	Began int64   `json:",omitempty"` // of the answers of one term: the first one
	Acts  []int64 `json:",omitempty"` // questions that were answered yes
	Usage *machine.Usage
	Error string `json:",omitempty"`
}

type what string

const (
	joined  what = "joined"  // it campaigns
	elected what = "elected" // the library says so
	lost    what = "lost"
	acted   what = "acted"
	stopped what = "stopped"
	used    what = "used"
	failed  what = "failed"
)

// memberVariable is the environment variable that makes a process a member.
const memberVariable = "TENURE_PEERS_MEMBER"

// memberMain runs a member if this process was started as one. It ends with its parent.
func memberMain() {
	if os.Getenv(memberVariable) == "" {
		return
	}
	out := crew.NewReporter(os.Stdout)
	if err := beMember(func(r report) { out.Send(r) }); err != nil {
		out.Send(report{What: failed, Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

func beMember(say func(report)) error {
	var me role
	rest, err := crew.Settings(os.Stdin, &me)
	if err != nil {
		return err
	}
	c, err := peers[me.Peer].open(me.place)
	if err != nil {
		return err
	}
	var meter machine.Meter
	if me.Quiet {
		use := meter.Use()
		say(report{What: used, Usage: &use})
	}
	all, err := campaigns(c, me, say)
	if err != nil {
		return err
	}
	say(report{What: joined, At: machine.Now()})
	for orders := json.NewDecoder(rest); ; {
		var o order
		if orders.Decode(&o) != nil {
			return nil
		}
		switch o {
		case stop:
			say(report{What: stopped, At: leave(all)})
		case weigh:
			meter.Take() // goroutines from before the campaigns do not count
			use := meter.Use()
			say(report{What: used, Usage: &use})
		}
	}
}

// campaigns joins all elections.
func campaigns(c client, me role, say func(report)) (all []candidate, err error) {
	tell := func(w what) func() { return func() { say(report{What: w, At: machine.Now()}) } }
	for _, name := range me.Elections {
		one, err := c.Join(name, tell(elected), tell(lost))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		if !me.Quiet {
			go ask(context.Background(), one.Leads, say)
		}
	}
	return all, nil
}

// leave stops all candidates. It returns when that began.
func leave(all []candidate) (at int64) {
	at = machine.Now()
	var ends sync.WaitGroup
	for _, one := range all {
		ends.Go(one.Stop)
	}
	ends.Wait()
	return at
}

const (
	pace  = 2 * time.Millisecond // between two questions
	batch = 25                   // answers in a report
)

// ask asks again and again whether the candidate leads, and reports each yes. The stamp is read
// before the question: an answer may be younger than its stamp, never older.
func ask(ctx context.Context, leads func() bool, say func(report)) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	term := report{What: acted}
	flush := func() {
		if len(term.Acts) > 0 {
			say(term)
		}
		term.Acts = nil
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := machine.Now()
		if !leads() {
			flush()
			term.Began = 0
			continue
		}
		if term.Began == 0 {
			term.Began = now
		}
		if term.Acts = append(term.Acts, now); len(term.Acts) == batch {
			flush()
		}
	}
}
