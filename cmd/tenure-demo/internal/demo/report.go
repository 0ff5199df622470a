package demo

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// report is one line from a candidate to the demo: an act, an event, or why it cannot take part.
type report struct {
	At stamp.Time `json:"at"`
	// Act is the token of the term under which the candidate acted at that moment.
	Act uint64 `json:"act,omitempty"`
	// Event is an event of the library, as the library encodes it.
	Event json.RawMessage `json:"event,omitempty"`
	// Wrote is the record that the candidate has written, if the store does not push it to the
	// demo.
	Wrote json.RawMessage `json:"wrote,omitempty"`
	// Peer is the reason why reports of the leader do not arrive.
	Peer string `json:"peer,omitempty"`
	// Fault is the reason why the candidate cannot take part.
	Fault string `json:"fault,omitempty"`
	// Denied reports that the fault is a missing right.
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

// send ignores errors: they mean that the demo is gone. Then the candidate ends anyway, since its
// standard input ends.
func (r *reporter) send(line report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(line)
}
