package dashboard

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tenure-go/tenure"
)

// Member is what a process reports of its own part in an election.
type Member struct {
	Election    string       `json:"election"`
	ID          string       `json:"id"`
	State       tenure.State `json:"state"`
	Eligible    bool         `json:"eligible"`
	Priority    int          `json:"priority"`
	LastContact time.Time    `json:"last_contact,omitzero"` // by the wall clock of the process
	Problem     string       `json:"problem,omitempty"`     // the error of tenure.Status.Health
}

// Report returns a handler that serves, as a JSON array, a Member for each election that the given
// function returns. A Dashboard in another process reads it: see Source.Members. The handler calls
// the function for each request, and does not authenticate requests.
func Report(elections func() []*tenure.Election) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all := []Member{}
		for _, e := range elections() {
			all = append(all, memberOf(e))
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(all) // an error means that the reader has gone
	})
}

func memberOf(e *tenure.Election) Member {
	s := e.Status()
	m := Member{Election: e.Name(), ID: e.ID(), State: s.State, Eligible: s.Eligible, Priority: s.Priority, LastContact: s.LastContact}
	if err := s.Health(); err != nil {
		m.Problem = err.Error()
	}
	return m
}
