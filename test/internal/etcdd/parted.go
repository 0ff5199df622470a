package etcdd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// partedSite is a cluster whose members are cut off from each other. Each client reaches one member
// alone, so that some are on the side of a minority.
type partedSite struct{ *Site }

// Open connects each candidate to another member.
func (s partedSite) Open(t testing.TB, n int) (driver.Store, rig.Way) {
	t.Helper()
	return s.openAt(t, s.Servers[n%len(s.Servers)])
}

// Faults are partitions. The name tells if a way is cut in one direction.
func (s partedSite) Faults() (all []rig.Fault) {
	for _, p := range []struct {
		name, why string
		ways      func(leader, one, other *Server) []way
	}{
		{
			"the leader is cut off", "a leader without the others acknowledges no write, and answers no read",
			func(leader, one, other *Server) []way { return slices.Concat(both(leader, one), both(leader, other)) },
		},
		{
			"a follower is cut off", "a minority acknowledges no write, and answers no read",
			func(leader, one, other *Server) []way { return slices.Concat(both(one, leader), both(one, other)) },
		},
		{
			"the leader is mute", "the others elect a leader that the former one does not know of",
			func(leader, one, other *Server) []way { return []way{{leader, one}, {leader, other}} },
		},
		{
			"the leader is deaf", "a leader that hears no confirmation acknowledges nothing",
			func(leader, one, other *Server) []way { return []way{{one, leader}, {other, leader}} },
		},
		{
			"a follower is mute", "a follower that hears all learns of writes whose confirmations are lost",
			func(leader, one, other *Server) []way { return []way{{one, leader}, {one, other}} },
		},
		{
			"a link is cut", "a follower that reaches the other one alone deposes no leader, and answers nothing old",
			func(leader, one, _ *Server) []way { return both(leader, one) },
		},
		{
			"a link is cut in one direction", "a follower that does not hear its leader still sends it writes",
			func(leader, one, _ *Server) []way { return []way{{leader, one}} },
		},
		{
			"all are cut off", "without a majority nothing is acknowledged",
			func(leader, one, other *Server) []way {
				return slices.Concat(both(leader, one), both(leader, other), both(one, other))
			},
		},
	} {
		all = append(all, rig.Fault{
			Name: p.name, Why: p.why, Before: time.Second, Lasts: 6 * time.Second, Least: 12 * time.Second, Unknowns: 5,
			Fall: func(t testing.TB, rng *rand.Rand) func() {
				leader := s.leader(t)
				others := s.others(leader)
				rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
				s.network.part(p.ways(leader, others[0], others[1])...)
				return func() {
					s.network.heal()
					rig.Must(t, s.Whole())
				}
			},
		})
	}
	return all
}

// both returns the ways between two members.
func both(a, b *Server) []way { return []way{{a, b}, {b, a}} }
