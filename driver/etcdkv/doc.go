// Package etcdkv holds elections in etcd. Use it where a service has an etcd cluster anyway.
//
//	store, err := etcdkv.Open(clientv3.Config{
//		Endpoints: []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"},
//	}, "/elections/")
//	...
//	defer store.Close() // after the last Run has returned
//	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
//
// # What it relies on
//
// A cell is one key. A compare-and-swap is one transaction, which the cluster applies only if the
// key still has both the expected ModRevision and the expected bytes, or is still absent. So a
// late request never replaces other bytes, even if revisions recur because a snapshot was
// restored. Reads are linearizable. The revision of the cluster rises with each write and is the
// floor of the terms. No etcd lease and no session is used: the lease and the deadline are those
// of the election, and an etcd that is slow, paused or without a quorum cannot extend them.
//
// # Histories
//
// Each response names the cluster (cluster id), its revision and its raft term. In one history the
// revision never falls between two answers that follow each other. The raft term falls only at a
// member that was so far behind that it got a snapshot, until it applies its next entry: a false
// end of the history, which costs a lease. Two things show that a history has ended, because a
// snapshot was restored or the data of all members was wiped:
//
//   - To a member that goes on: another cluster id, or a revision or raft term below one that an
//     earlier answer showed. Its entries then have a new era, and its versions of the former
//     history are conflicts.
//   - To every member, also one that has just started: each write puts its cluster id and raft
//     term behind the value. If the cluster id is not that of the answer, or the raft term is
//     higher than that of the answer, the entry is unproven, and every member waits one lease.
//
// A snapshot that is restored with another token (or other peer addresses) has another cluster id,
// so every member notices it. With an unchanged token the cluster id stays, and the raft term
// begins again at 2 or so. Then a member that has just started notices the restore only if the
// record was written in a higher raft term. Nothing else in etcd's answers differs. See
// docs/etcd.md for the experiment and for a restore that is safe in all cases.
//
// A snapshot also takes back the revision, and with it the floor: tokens can recur unless it is
// restored with --bump-revision.
//
// # Pushes
//
// One stream watches all keys below the prefix, for all watches of a Store. The first watch opens
// it, and the last one closes it. It asks for a member with a leader. After 5 s without a message
// the store asks the server for a progress notification, and replaces a stream that stays silent
// for 3 s more. A new stream resumes behind the last event; where that is compacted, or the
// history is another one, all elections read.
//
// # Rights
//
// With authentication, a candidate needs readwrite on the keys below the prefix, and an observer
// read:
//
//	etcdctl role grant-permission candidate readwrite /elections/ --prefix
//	etcdctl role grant-permission observer read /elections/ --prefix
//
// # Calls
//
// A call is one attempt: one request, and before the first write of a Store one more. The client
// library repeats no request. The store repeats a request that the server refused before it looked
// at it: the login of the client had ended, or the endpoint is a learner, and there are others.
// While no connection is open, calls fail at once.
package etcdkv
