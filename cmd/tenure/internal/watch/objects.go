package watch

import (
	"io"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/story"
	"github.com/tenure-go/tenure/internal/units"
)

// objects writes JSON objects: the library's events unchanged, and others that begin with the same
// fields. A leader that was found has an object of its own.
type objects struct {
	out     io.Writer
	options Options
}

func (o *objects) tell(i item) {
	switch f := i.Fact; {
	case f.What == story.Named:
		o.named(i)
	case f.What == story.Elected && f.AtLeast:
		o.found(i)
	case i.Event != nil:
		output.JSON(o.out, i.Event)
	}
	switch f := i.Fact; {
	case f.What == story.Elected && f.Text != "":
		o.failover(i)
	case f.What == story.Asked:
		o.asked(i)
	case f.What == connection:
		o.connection(i)
	}
}

func (o *objects) head(at time.Time, event string, term uint64) output.Head {
	return output.Head{Time: at.UTC(), Event: event, Election: o.options.Election, ID: o.options.Config.ID, Term: term}
}

// named is a record that names a leader that was not seen to renew.
func (o *objects) named(i item) {
	var written *time.Time
	if !i.Written.IsZero() {
		at := i.Written.UTC()
		written = &at
	}
	output.JSON(o.out, struct {
		output.Head
		Leader      string     `json:"leader"`
		Address     string     `json:"address,omitempty"`
		Written     *time.Time `json:"written,omitempty"`
		LeaseMillis int64      `json:"leaseMillis"`
	}{o.head(i.At, "named", i.Term), i.Who, i.Address, written, i.Lease.Milliseconds()})
}

// found is the event of a leader that led before it was first seen.
func (o *objects) found(i item) {
	output.JSON(o.out, struct {
		output.Head
		Leader  string    `json:"leader"`
		Address string    `json:"address,omitempty"`
		Since   time.Time `json:"since"`
		AtLeast bool      `json:"atLeast"`
		Missed  int       `json:"missed,omitempty"`
	}{o.head(seen(i), string(tenure.EventLeader), i.Term), i.Who, i.Address, i.At.UTC(), true, i.Event.Missed})
}

// failover comes after the event of the new leader.
func (o *objects) failover(i item) {
	line := struct {
		output.Head
		Leader         string   `json:"leader"`
		From           string   `json:"from"`
		Kind           string   `json:"kind"`
		Millis         float64  `json:"millis"`
		AtLeast        bool     `json:"atLeast,omitempty"`
		ByClockMillis  float64  `json:"byClockMillis,omitempty"`
		LeastMillis    *float64 `json:"leastMillis,omitempty"`
		DowntimeMillis float64  `json:"downtimeMillis,omitempty"`
	}{
		o.head(i.At, "failover", i.Term), i.Who, i.Before.ID, i.Text, units.Millis(i.Took), i.TookAtLeast,
		units.Millis(i.TookByClock), nil, units.Millis(i.Downtime),
	}
	if i.Least >= 0 {
		least := units.Millis(i.Least)
		line.LeastMillis = &least
	}
	output.JSON(o.out, line)
}

func (o *objects) asked(i item) {
	output.JSON(o.out, struct {
		output.Head
		Leader string `json:"leader"`
		To     string `json:"to"`
		By     string `json:"by"`
	}{o.head(i.At, "asked", i.Term), i.Who, i.Request.To, i.Request.By})
}

func (o *objects) connection(i item) {
	cause := ""
	if i.cause != nil {
		cause = i.cause.Error()
	}
	output.JSON(o.out, struct {
		output.Head
		Up    bool   `json:"up"`
		Cause string `json:"cause,omitempty"`
	}{o.head(i.At, "store", 0), i.up, cause})
}
