package tenure

import (
	"encoding/json"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Member is what a process says of its own part in an election, for people. No decision depends on
// it.
type Member struct {
	Election    string    `json:"election"`
	ID          string    `json:"id"`
	State       State     `json:"state"`
	Eligible    bool      `json:"eligible"`
	Priority    int       `json:"priority"`
	LeaseMillis int64     `json:"lease_ms,omitempty"`
	Address     string    `json:"address,omitempty"`
	Incarnation string    `json:"incarnation,omitempty"` // names the Election value, as in Leader
	LastContact time.Time `json:"last_contact,omitzero"` // by the wall clock of the process
	Problem     string    `json:"problem,omitempty"`     // the error of Status.Health
}

// Member returns what this process says of its part in the election at this moment. It does not
// call the store.
func (e *Election) Member() Member { return e.runner.member() }

func (m *runner) member() Member {
	s, _ := m.status()
	m.mu.Lock()
	defer m.mu.Unlock()
	all := Member{
		Election: m.key, ID: m.id, Incarnation: m.machine.Incarnation(), Address: m.settings.given.Address,
		State: s.State, Eligible: s.Eligible, Priority: s.Priority, LeaseMillis: m.settings.machine.Lease.Milliseconds(), LastContact: s.LastContact,
	}
	if err := s.Health(); err != nil {
		all.Problem = err.Error()
	}
	return all
}

// announcement returns the Member as JSON of at most driver.MaxPresence bytes, without what does
// not fit, and nil if too little fits.
func (m Member) announcement() []byte {
	for {
		text, err := json.Marshal(m)
		over := len(text) - driver.MaxPresence
		switch {
		case err != nil:
			return nil
		case over <= 0:
			return text
		case m.Problem != "":
			m.Problem = m.Problem[:max(0, len(m.Problem)-max(over, 32))]
		case m.Address != "":
			m.Address = ""
		default:
			return nil
		}
	}
}
