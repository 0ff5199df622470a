package agent

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tenure-go/tenure/internal/sse"
)

// event is something that the client's stream tells. It grants no time (A4).
type event struct {
	name   string
	of     *work
	reason string
}

// eventData is the data of an event.
type eventData struct {
	// The first event, "campaign", has these: the name of the campaign for further requests, the id
	// of the candidate, and its times.
	Campaign        string `json:"campaign,omitempty"`
	ID              string `json:"id,omitempty"`
	HeartbeatMillis millis `json:"heartbeatMillis,omitempty"`

	Token           uint64 `json:"token,omitempty"`
	RemainingMillis millis `json:"remainingMillis,omitempty"`
	// WithinMillis is how long the work may take to finish, in the event "finish".
	WithinMillis millis `json:"withinMillis,omitempty"`
	Reason       string `json:"reason,omitempty"`
}

// keepAliveAfter is the time between two comments that keep a connection alive.
const keepAliveAfter = 15 * time.Second

// stream tells the client of each event, until the campaign is over or the client is gone.
func (c *campaign) stream(w http.ResponseWriter, r *http.Request) {
	out := sse.NewWriter(w)
	tell := func(name string, data eventData) {
		text, err := json.Marshal(data)
		if err != nil {
			panic(err) // it cannot happen: data has only texts and numbers
		}
		out.Event("", name, text)
	}
	tell("campaign", eventData{Campaign: c.name, ID: c.election.ID(), HeartbeatMillis: millisOf(c.interval)})
	keep := time.NewTicker(keepAliveAfter)
	defer keep.Stop()
	defer c.end(errStream)
	for out.Err() == nil {
		select {
		case e := <-c.events:
			data := eventData{Reason: e.reason}
			if e.name == "finish" {
				data.WithinMillis = millisOf(c.finishWithin)
			}
			if e.of != nil {
				data.Token, data.RemainingMillis = e.of.term.Token(), millisOf(e.of.term.Remaining())
			}
			tell(e.name, data)
		case <-keep.C:
			out.Raw(": still here\n\n")
		case <-c.over:
			tell("over", eventData{Reason: c.state().over.Error()})
			return
		case <-r.Context().Done():
			return
		}
	}
}
