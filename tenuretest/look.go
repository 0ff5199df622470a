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
	// waitLimit is how long the stage waits: longer than the work may take to finish, or the lease
	// to expire if it does not, even on a slow machine. Only a failing test waits so long.
	waitLimit = 2 * time.Minute
	// firstPoll and longestPoll bound the time between two checks where no channel announces a
	// change.
	firstPoll   = 10 * time.Millisecond
	longestPoll = 100 * time.Millisecond
)

// Leader returns the leader in the store, or the zero Leader if there is none. It waits until the
// rival has seen the present record, for 2 minutes at most.
func (s *Stage) Leader() tenure.Leader {
	end := time.NewTimer(waitLimit)
	defer end.Stop()
	for {
		changed := s.rival.election.Changed()
		now := s.rival.election.Status()
		if s.rivalIsUpToDate(now) {
			return now.Leader
		}
		select {
		case <-changed:
		case <-end.C:
			return now.Leader
		}
	}
}

// rivalIsUpToDate reports whether the rival sees the present state of the store.
func (s *Stage) rivalIsUpToDate(seen tenure.Status) bool {
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

// waitUntil checks at every change of the election, and from time to time, whether a state is
// reached. If it is not reached within waitLimit, it stops the test.
func (s *Stage) waitUntil(failure string, reached func(now tenure.Leader) bool) bool {
	s.t.Helper()
	end := time.NewTimer(waitLimit)
	defer end.Stop()
	for wait := firstPoll; ; wait = min(wait*5/4, longestPoll) {
		changed := s.rival.election.Changed()
		if reached(s.Leader()) {
			return true
		}
		select {
		case <-changed:
		case <-time.After(wait):
		case <-end.C:
			s.t.Fatalf("tenuretest: %s within %v: %s", failure, waitLimit, s.describe())
			return false
		}
	}
}

// describe names the leader, and the candidates that do not follow the election: the usual reason
// why a wait fails.
func (s *Stage) describe() string {
	var b strings.Builder
	if l := s.Leader(); l.Exists() {
		fmt.Fprintf(&b, "%q leads", l.ID)
	} else {
		b.WriteString("nobody leads")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.candidates)) {
		if !s.candidates[id].follows() {
			fmt.Fprintf(&b, ", %q does not follow the election %q", id, s.election)
		}
	}
	return b.String()
}
