// Package k8slease holds elections in Lease objects of Kubernetes. Use it where services run in a
// cluster anyway. It works beside the electors of client-go.
//
//	config, err := rest.InClusterConfig()
//	...
//	store, err := k8slease.New(config, "production")
//	...
//	defer store.Close() // after the last Run has returned
//	e, err := tenure.New(store, "billing", tenure.Config{ID: hostname})
//
// # What it relies on
//
// A cell is a Lease in one namespace, whose name is that of the key: see Name. A read is a GET
// without a resourceVersion, which the API server answers from etcd and not from a cache. A
// compare-and-swap is a PUT with the uid and the resourceVersion of the Lease, which the server
// refuses unless the Lease still has both. From an absence it is a POST, which the server refuses
// if there is a Lease. The store sends each write once, and keeps package http from sending it
// again. The only exception is an answer of 429: the server has not begun the request then, and the
// store sends it again after the time in Retry-After. A refusal of that second delivery leaves the
// outcome open, because a proxy may have answered 429 after the server had applied the first one.
//
// The version of a state is its uid and its resourceVersion. A resourceVersion is the revision of
// etcd, a number that rises with each write to the cluster. Kubernetes documents since release 1.35
// that the resourceVersions of one type compare as numbers; earlier releases behave the same. The
// floor, an upper bound on every earlier term, is the resourceVersion plus the time in microseconds
// that the answer of the API server has in its Date. A read whose answer has no Date, such as
// behind a proxy that removes it, is an error: a floor without it would be below earlier terms. A
// Lease that is absent has no resourceVersion; then that of a list of Leases is part of the floor.
// Because of the time, terms also grow after etcd was put back to an older state. They can fall
// only if a Lease is deleted, no member is left that knows its term, and the clock of the API
// server goes back or another API server, whose clock is behind by more than the lease, answers
// next.
//
// The resourceVersion also shows that etcd was put back to an older state. A restored cluster keeps
// all uids, but within one history a later answer cannot have a lower resourceVersion. The store
// compares each answer with all that it knew when it sent the request. The era is the uid of the
// Lease, with the number of times that this process has seen the resourceVersion fall.
//
// # What it cannot notice
//
// A process that starts after etcd was put back has nothing to compare with. It believes the state
// that it finds. If that is a release, and a leader of the lost history has not heard of the
// restore, both may lead until the lease of the latter ends or its next renewal fails. The same
// holds for a process that sees a restored cluster only after the resourceVersion has risen above
// all that it knew. So stop candidates before you restore etcd, or restore with a raised revision
// (etcdutl snapshot restore --bump-revision), and wait one lease.
//
// # The record
//
// The record of the election is in the annotation tenure-go.github.io/record. Electors of client-go
// know only the spec, and keep annotations of others when they write it. So a second annotation,
// tenure-go.github.io/spec-hash, has a hash of the record and of the spec that was written with it.
// If it does not fit, the spec counts:
//
//   - A holder is a foreign leader. Members wait for leaseDurationSeconds after they have first
//     seen the present spec, on their own clocks, or for their own lease if that is longer. Then
//     they take the Lease over.
//   - No holder and a duration of 1 s is a release, as client-go writes it. Members claim at once.
//     After a record that is held they wait for its lease, since an operator may have removed the
//     holder while the leader trusts its lease.
//   - No holder and a longer duration is an edit by hand. Members wait.
//   - A Lease that never had a holder is an absence.
//   - A duration above 1 h is foreign: no member overwrites it, and nobody leads.
//
// The spec that the store writes says the same to electors of client-go:
//
//	holderIdentity        the ID, an underscore and the incarnation; empty after a release.
//	                      Beginning with vacant_: no candidate may claim yet
//	leaseDurationSeconds  the lease, rounded up to whole seconds; 1 after a release
//	renewTime             the time of the record, or the next whole second that is later than the
//	                      last one: it changes with each renewal
//	acquireTime           that of the first record of the term
//	leaseTransitions      rises by 1 with each new leader. It is no fencing token
//
// An elector of client-go waits for leaseDurationSeconds after it has first seen a spec, as members
// do. So none takes over from a leader that is alive, unless the Lease is deleted or emptied, which
// it claims at once: docs/kubernetes.md says when. It does not know margins and drift bounds: its
// clock must be as accurate as the leader's drift bound says. client-go itself lets its leader act
// until RenewDeadline has passed, counted from the answer to its last renewal.
//
// # Rights
//
// A candidate needs the verbs get, list, watch, create and update on leases in the API group
// coordination.k8s.io, in its namespace. An observer needs get, list and watch.
//
// # Calls
//
// A call is one request, except that a read of an absent Lease is two, and that a write from a
// version which this process did not see last begins with a read. Requests share connections of
// the store's own. On HTTP/2 the store asks a silent server every second whether it still answers,
// and gives up the connection after 2 s more. All watches share one watch of the namespace, and so
// one list of all its Leases whenever it begins. The server ends it after half an hour or more, and
// the store begins another.
package k8slease
