package demo

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// report is one line that a candidate tells the demo: an act, an event, or why it cannot take part.
type report struct {
	At stamp.Time `json:"at"`
	// Act is the token of the term under which the candidate acted at that moment.
	Act uint64 `json:"act,omitempty"`
	// Event is one of the library's, as the library writes it.
	Event json.RawMessage `json:"event,omitempty"`
	// Wrote is the record that the candidate has written, where the demo cannot see it otherwise.
	Wrote json.RawMessage `json:"wrote,omitempty"`
	// Peer is why the leader cannot be followed directly.
	Peer string `json:"peer,omitempty"`
	// Fault is why the candidate cannot take part.
	Fault string `json:"fault,omitempty"`
	// Denied says that the fault is a missing right.
	Denied bool `json:"denied,omitempty"`
}

// event is the part of a library's event that the demo reads.
type event struct {
	Time   time.Time        `json:"time"`
	Kind   tenure.EventKind `json:"event"`
	ID     string           `json:"id"`
	Term   uint64           `json:"term"`
	Leader string           `json:"leader"`
	Cause  string           `json:"cause"`
	Missed int              `json:"missed"`

	raw json.RawMessage
}

func (r report) event() (*event, error) {
	e := event{raw: r.Event}
	if err := json.Unmarshal(r.Event, &e); err != nil {
		return nil, err
	}
	return &e, nil
}

// reporter writes reports. Acts and events come from different goroutines.
type reporter struct {
	mu  sync.Mutex
	out *json.Encoder
}

func newReporter(w io.Writer) *reporter { return &reporter{out: json.NewEncoder(w)} }

// send may fail because the demo is gone. The candidate ends then anyway, since its standard input
// does.
func (r *reporter) send(line report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(line)
}
