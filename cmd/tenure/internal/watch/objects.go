package watch

import (
	"io"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/jsonl"
	"github.com/tenure-go/tenure/cmd/tenure/internal/units"
	"github.com/tenure-go/tenure/cmd/tenure/internal/view"
)

// objects writes one for each thing: the library's events as they are, and others that begin alike.
type objects struct {
	out     io.Writer
	options Options
}

func (o *objects) tell(i item) {
	if i.event != nil {
		jsonl.Print(o.out, i.event)
	}
	switch f := i.fact; {
	case f.What == view.Elected && f.Text != "":
		o.failover(i)
	case f.What == view.Asked:
		o.asked(i)
	case f.What == connection:
		o.connection(i)
	}
}

func (o *objects) head(at time.Time, event string, term uint64) jsonl.Head {
	return jsonl.Head{Time: at.UTC(), Event: event, Election: o.options.Election, ID: o.options.Config.ID, Term: term}
}

// failover comes after the event of the new leader.
func (o *objects) failover(i item) {
	line := struct {
		jsonl.Head
		Leader      string   `json:"leader"`
		From        string   `json:"from"`
		Kind        string   `json:"kind"`
		Millis      float64  `json:"millis"`
		LeastMillis *float64 `json:"leastMillis,omitempty"`
	}{o.head(i.fact.At, "failover", i.fact.Term), i.fact.Who, i.before.ID, i.fact.Text, units.Millis(i.fact.Took), nil}
	if i.fact.Least >= 0 {
		least := units.Millis(i.fact.Least)
		line.LeastMillis = &least
	}
	jsonl.Print(o.out, line)
}

func (o *objects) asked(i item) {
	jsonl.Print(o.out, struct {
		jsonl.Head
		Leader string `json:"leader"`
		To     string `json:"to"`
		By     string `json:"by"`
	}{o.head(i.fact.At, "asked", i.fact.Term), i.fact.Who, i.request.To, i.request.By})
}

func (o *objects) connection(i item) {
	cause := ""
	if i.cause != nil {
		cause = i.cause.Error()
	}
	jsonl.Print(o.out, struct {
		jsonl.Head
		Up    bool   `json:"up"`
		Cause string `json:"cause,omitempty"`
	}{o.head(i.fact.At, "store", 0), i.up, cause})
}
