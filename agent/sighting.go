package agent

import (
	"errors"
	"maps"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/bridge"
)

// The states of an election, as far as an observer has seen it.
const (
	// unknown: the store was not read yet or does not answer, or the record is damaged. A candidate
	// may lead.
	unknown = "unknown"
	// named: the record names a leader, and no renewal of it was seen. It may be dead.
	named = "named"
	// confirmed: a renewal of this leader was seen, or a client of this agent leads.
	confirmed = "confirmed"
	// vacant: the record names no leader, or its lease has run out by the clock of the agent.
	vacant = "vacant"
)

// sighting is the last known state of an election. It grants nothing.
type sighting struct {
	Election string `json:"election"`
	// Version differs from that of each earlier sighting with other contents.
	Version string `json:"version,omitempty"`
	State   string `json:"state"`
	// Record is the kind of the record in the store, if it was read.
	Record admin.Kind `json:"record,omitempty"`
	// Leader, Address, Metadata, Token and LeaseMillis are those of the leader, if one is named.
	Leader      string            `json:"leader,omitempty"`
	Address     string            `json:"address,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Token       uint64            `json:"token,omitempty"`
	LeaseMillis millis            `json:"leaseMillis,omitempty"`
	// SeenMillis is the longest time for which the store has not shown this record, if that is
	// known. Events have none, since they may wait in a buffer.
	SeenMillis *millis `json:"seenMillis,omitempty"`
	// Problem says in fixed words why the state is not known, or not up to date. The errors of
	// stores name hosts, so they go to the log alone.
	Problem string `json:"problem,omitempty"`
}

const (
	problemAway    = "the store does not answer"
	problemDenied  = "the store denies reading"
	problemDamaged = "the key holds no valid election record"
)

// sightingOf returns the sighting of a status. It says no more: in an outage of the store, a lease
// that has run out does not show that no candidate leads.
func sightingOf(s *tenure.Status) sighting {
	out := sighting{Election: s.Election, State: unknown, Record: s.Record.Kind}
	switch {
	case s.Err != nil, errors.Is(s.Trouble, tenure.ErrDenied):
		out.Problem = problemDenied
	case s.Trouble != nil: // otherwise they are conflicts
		out.Problem = problemAway
	}
	switch {
	case !s.Known:
		out.Record = ""
	case s.Record.Problem != nil:
		out.Problem = problemDamaged
	case s.Leader.Exists():
		out.State = named
		if s.Confirmed || s.Term != 0 && s.Term == s.Leader.Term {
			out.State = confirmed
		}
		out.Leader, out.Address, out.Metadata = s.Leader.ID, s.Leader.Address, s.Leader.Metadata
		out.Token, out.LeaseMillis = s.Leader.Term, millisOf(s.Record.Lease)
	case s.Failures == 0:
		out.State = vacant
	}
	return out
}

// equal compares all but the version and the time.
func (s *sighting) equal(o *sighting) bool {
	return s.State == o.State && s.Record == o.Record && s.Leader == o.Leader && s.Address == o.Address &&
		maps.Equal(s.Metadata, o.Metadata) && s.Token == o.Token && s.LeaseMillis == o.LeaseMillis && s.Problem == o.Problem
}

// sight returns what an election has seen, and whether that is anything. The time comes first: a
// record that is seen after it is shown by the store no longer ago.
func sight(e *tenure.Election, c clock.Clock) (now sighting, known bool) {
	at, shown := bridge.ShownAt(e)
	s := e.Status()
	if !shown && s.Known { // the first answer of the store came in between
		at, shown = bridge.ShownAt(e)
		s = e.Status()
	}
	now = sightingOf(&s)
	if shown && s.Known {
		m := millisOf(c.Now().LeaderSince(at) + time.Millisecond - 1)
		now.SeenMillis = &m
	}
	return now, s.Known || s.Failures > 0 || s.Err != nil
}
