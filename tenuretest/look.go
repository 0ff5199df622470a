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
	// patience is how long the stage waits: more than work may take to finish, and the lease of who
	// does not, on a machine that is slow. Only what never happens takes that long.
	patience = 2 * time.Minute
	// pause and longest are the times between looks at what tells of no change.
	pause   = 10 * time.Millisecond
	longest = 100 * time.Millisecond
)

// Leader returns who leads; the zero Leader is nobody.
func (s *Stage) Leader() tenure.Leader {
	end := time.NewTimer(patience)
	defer end.Stop()
	for {
		now, changed := s.rival.election.Status()
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

// current reports whether what the rival sees is what the store holds.
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

// until asks at every change of the election, and from time to time, whether it has come to what is wanted. If it does
// not, it stops the test.
func (s *Stage) until(failure string, reached func(now tenure.Leader) bool) bool {
	s.t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	for wait := pause; ; wait = min(wait*5/4, longest) {
		_, changed := s.rival.election.Status()
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

// scene says who leads and who does not follow, which is why most waits fail.
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
