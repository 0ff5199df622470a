package etcdkv

import (
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestEndsOfHistories: two answers that follow each other show whether the history goes on.
func TestEndsOfHistories(t *testing.T) {
	before := &pb.ResponseHeader{ClusterId: 7, Revision: 100, RaftTerm: 5}
	for _, c := range []struct {
		name, why string
		next      *pb.ResponseHeader
		same      bool
	}{
		{"nothing new", "reads leave the revision", &pb.ResponseHeader{ClusterId: 7, Revision: 100, RaftTerm: 5}, true},
		{"a write and an election", "both numbers rise", &pb.ResponseHeader{ClusterId: 7, Revision: 101, RaftTerm: 6}, true},
		{"another member", "members differ in nothing else", &pb.ResponseHeader{ClusterId: 7, MemberId: 9, Revision: 100, RaftTerm: 5}, true},
		{"another cluster", "its revisions are others", &pb.ResponseHeader{ClusterId: 8, Revision: 200, RaftTerm: 9}, false},
		{"a lower revision", "a snapshot lacks the last writes", &pb.ResponseHeader{ClusterId: 7, Revision: 99, RaftTerm: 5}, false},
		{"a lower raft term", "a restored cluster that has caught up begins its terms again", &pb.ResponseHeader{ClusterId: 7, Revision: 900, RaftTerm: 2}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h history
			first, same, err := h.hear(h.now(), before)
			if !same || err != nil {
				t.Fatalf("the first answer: %v, %v", same, err)
			}
			second, same, err := h.hear(h.now(), c.next)
			if same != c.same || err != nil {
				t.Errorf("got %v, %v: %s", same, err, c.why)
			}
			if (first.era() == second.era()) != c.same || second.era() == 0 {
				t.Errorf("eras %d and %d: %s", first.era(), second.era(), c.why)
			}
			if third, same, err := h.hear(h.now(), c.next); !same || err != nil || third.era() != second.era() {
				t.Errorf("the same answer again: era %d, %v, %v", third.era(), same, err)
			}
		})
	}
}

// TestAnswersThatOvertakeEachOther: a request that was sent before a revision was known may show a
// lower one. After the end of a history, an answer to an older request may be of either.
func TestAnswersThatOvertakeEachOther(t *testing.T) {
	var h history
	at := func(cluster uint64, revision int64) *pb.ResponseHeader {
		return &pb.ResponseHeader{ClusterId: cluster, Revision: revision, RaftTerm: 2}
	}
	early := h.now()
	if _, _, err := h.hear(early, at(7, 100)); err != nil {
		t.Fatal(err)
	}
	if now, same, err := h.hear(early, at(7, 50)); !same || err != nil || now.revision != 100 {
		t.Errorf("a slow answer: %+v, %v, %v", now, same, err)
	}
	sent := h.now()
	if _, same, err := h.hear(h.now(), at(8, 100)); same || err != nil {
		t.Errorf("another cluster: %v, %v", same, err)
	}
	for _, cluster := range []uint64{7, 8} {
		if _, _, err := h.hear(sent, at(cluster, 200)); !errors.Is(err, errMoved) {
			t.Errorf("an answer of cluster %d to a request of the former history: %v", cluster, err)
		}
	}
}
