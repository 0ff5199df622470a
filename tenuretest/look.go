package tenuretest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/internal/record"
)

const (
	// patience is how long the stage waits: longer than work may take to finish, and than the lease
	// of a candidate that does not, on a slow machine. Only a failing test waits so long.
	patience = 2 * time.Minute
	// pause and longest are the times between looks at states that no channel announces.
	pause   = 10 * time.Millisecond
	longest = 100 * time.Millisecond
)

// Leader returns the leader in the store, or the zero Leader if there is none. It waits until the
// rival has seen the present record, for 2 minutes at most.
func (s *Stage) Leader() tenure.Leader {
	end := time.NewTimer(patience)
	defer end.Stop()
	for {
		changed := s.rival.election.Changed()
		now := s.rival.election.Status()
		if s.current(now) {
			return now.Leader
		}
		select {
		case <-changed:
		case <-end.C:
			return now.Leader
		}
	}
}

// current reports whether the rival sees the present state of the store.
func (s *Stage) current(seen tenure.Status) bool {
	entry, err := s.store.Read(s.rival.ctx, s.election)
	if err != nil {
		return true // the stage is closed
	}
	r, err := record.Decode(entry.Value)
	if err != nil || !r.Held() {
		return !seen.Leader.Exists()
	}
	return seen.Record.Kind == admin.Held && seen.Record.Term == r.Term
}

// until checks at every change of the election, and from time to time, whether a state is reached.
// If it never is, it stops the test.
func (s *Stage) until(failure string, reached func(now tenure.Leader) bool) bool {
	s.t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	for wait := pause; ; wait = min(wait*5/4, longest) {
		changed := s.rival.election.Changed()
		if reached(s.Leader()) {
			return true
		}
		select {
		case <-changed:
		case <-time.After(wait):
		case <-end.C:
			s.t.Fatalf("tenuretest: %s within %v: %s", failure, patience, s.scene())
			return false
		}
	}
}

// scene names the leader and the candidates that do not follow, the usual reason why a wait fails.
func (s *Stage) scene() string {
	var b strings.Builder
	if l := s.Leader(); l.Exists() {
		fmt.Fprintf(&b, "%q leads", l.ID)
	} else {
		b.WriteString("nobody leads")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.seats)) {
		if !s.seats[id].follows() {
			fmt.Fprintf(&b, ", %q does not follow the election %q", id, s.election)
		}
	}
	return b.String()
}
