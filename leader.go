package tenure

import (
	"context"
	"iter"
	"maps"

	"github.com/tenure-go/tenure/internal/protocol"
)

// Leader describes the leader of an election. The zero value means that nobody leads.
type Leader struct {
	// ID is a label; two processes may have the same by mistake. Incarnation tells them apart.
	ID          string
	Incarnation string
	Address     string
	Metadata    map[string]string
	// Term is the fencing token of the leader's term.
	Term uint64
}

// Exists reports whether the election has a leader.
func (l Leader) Exists() bool { return l.ID != "" }

func leaderOf(l protocol.Leader) Leader {
	return Leader{
		ID: l.ID, Incarnation: l.Incarnation, Address: l.Addr, Metadata: maps.Clone(l.Metadata), Term: l.Term,
	}
}

// Leaders observes the election without campaigning. It yields the current leader as soon as it is
// known, and then each change of term, address or metadata. The zero Leader means that nobody leads
// as far as this process knows: the lease was released, or it expired by this process's clock, as
// in an outage of the store. A slow loop sees the latest leader, not every one.
//
// The first leader that it yields may be dead already. If so, Leaders yields the zero Leader when
// the lease of the dead leader has expired by this process's clock, unless it sees the next leader
// first. Status.Confirmed reports whether this process has seen the leader renew.
//
// Leaders ends when ctx ends or the loop is left. If the store denies reading and has never allowed
// it, Leaders yields an error that wraps ErrDenied, and ends. After any other failure it reads
// again.
//
// Set Config.Lease of an observer to that of the candidates. The record states how long the lease
// of its leader is, but the intervals and time limits of reading follow the Config of the observer:
// on a store that does not push, it sees a change within about Tuning.PollStable.
func (e *Election) Leaders(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		defer e.runner.observe()()
		for last, first := (Leader{}), true; ; {
			changed := e.Changed()
			s := e.Status()
			switch {
			case s.Err != nil:
				yield(Leader{}, s.Err)
				return
			case s.Known && (first || !same(s.Leader, last)):
				if !yield(s.Leader, nil) {
					return
				}
				last, first = s.Leader, false
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func same(a, b Leader) bool {
	return a.Incarnation == b.Incarnation && a.Term == b.Term && a.Address == b.Address && maps.Equal(a.Metadata, b.Metadata)
}
