package watch

import (
	"io"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/story"
	"github.com/tenure-go/tenure/internal/units"
)

// objects writes JSON objects: the library's events unchanged, and others that begin with the same
// fields.
type objects struct {
	out     io.Writer
	options Options
}

func (o *objects) tell(i item) {
	if i.Event != nil {
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

// failover comes after the event of the new leader.
func (o *objects) failover(i item) {
	line := struct {
		output.Head
		Leader      string   `json:"leader"`
		From        string   `json:"from"`
		Kind        string   `json:"kind"`
		Millis      float64  `json:"millis"`
		LeastMillis *float64 `json:"leastMillis,omitempty"`
	}{o.head(i.At, "failover", i.Term), i.Who, i.Before.ID, i.Text, units.Millis(i.Took), nil}
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
