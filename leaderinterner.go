package tenure

import (
	"maps"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/internal/record"
)

// leaderInterner keeps the leaders that a Group has seen, so that published data that is the same
// in many records is in memory once. That data is never changed.
type leaderInterner struct {
	mu    sync.Mutex
	known []internedLeader // one of each ID
}

// internedLeader is the published data of one leader.
type internedLeader struct {
	id, addr string
	metadata map[string]string
}

// maxInterned bounds the number of kept leaders, which may be long gone.
const maxInterned = 64

// intern replaces a record's data about its leader by an equal copy that is known already.
func (l *leaderInterner) intern(r *record.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.known, func(k internedLeader) bool { return k.id == r.LeaderID })
	seen := internedLeader{r.LeaderID, r.LeaderAddr, r.Metadata}
	switch {
	case i < 0 && len(l.known) == maxInterned:
		l.known = []internedLeader{seen}
	case i < 0:
		l.known = append(l.known, seen)
	case l.known[i].same(&seen):
		k := l.known[i]
		r.LeaderID, r.LeaderAddr, r.Metadata = k.id, k.addr, k.metadata
	default:
		l.known[i] = seen
	}
}

func (l *internedLeader) same(o *internedLeader) bool {
	return l.addr == o.addr && maps.Equal(l.metadata, o.metadata)
}
