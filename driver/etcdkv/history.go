package etcdkv

import (
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// point is a point in a history of the cluster, as an answer showed it. Within one history,
// revision and raft term never fall from one answer to a request that was sent after it. There is
// one exception, which costs a lease: a member that lagged and got a snapshot from its leader shows
// the raft term of the last entry that it applied before, until it applies the next one.
type point struct {
	// changes counts the ends of histories that this Store has noticed.
	changes  uint64
	cluster  uint64 // its id; 0 if no answer has come yet
	revision int64
	term     uint64 // the raft term
}

func pointOf(h *pb.ResponseHeader) point {
	return point{cluster: h.GetClusterId(), revision: h.GetRevision(), term: h.GetRaftTerm()}
}

func (p point) known() bool { return p.cluster != 0 }

// era names the history. Cluster ids are hashes, so sums do not meet in practice.
func (p point) era() uint64 { return max(p.cluster+p.changes, 1) }

func (p point) stamp() stamp { return stamp{p.cluster, p.term} }

// history is the latest point that this Store knows.
type history struct {
	mu     sync.Mutex
	latest point
}

// now returns the latest point. Call it before a request is sent.
func (h *history) now() point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest
}

// hear learns from the header of a linearizable answer to a request that was sent at a point. It
// returns the latest point, and whether the answer is of the history of that point. If another
// answer has shown the end of that history meanwhile, it is not known to which one this answer
// belongs: then it returns errMoved.
func (h *history) hear(sent point, header *pb.ResponseHeader) (now point, same bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	heard := pointOf(header)
	if sent.changes != h.latest.changes {
		return h.latest, false, errMoved
	}
	same = !sent.known() && !h.latest.known() ||
		heard.cluster == h.latest.cluster && heard.revision >= sent.revision && heard.term >= sent.term
	if !same {
		heard.changes = h.latest.changes + 1
		h.latest = heard
		return h.latest, false, nil
	}
	h.latest.cluster = heard.cluster
	h.latest.revision = max(h.latest.revision, heard.revision)
	h.latest.term = max(h.latest.term, heard.term)
	return h.latest, true, nil
}

// see learns from an event of a stream that was opened at a point of this history. Followers of a
// healthy leader send nothing, so without it they would not notice that later answers show less.
func (h *history) see(at point, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.changes == h.latest.changes && at.cluster == h.latest.cluster {
		h.latest.revision = max(h.latest.revision, revision)
		h.latest.term = max(h.latest.term, at.term)
	}
}
